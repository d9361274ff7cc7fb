package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	code := &fstest.MapFile{Data: []byte("package mpe\n\nfunc New() {}\n\nfunc (e *Engine) Start(op int) {}\n")}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"sound", "[a](../mpe/a.go#x) `mpe/` `mpe/a.go` [b](https://x.org/y) `other/x` `bin/z` `a/b c`", nil},
		{"link", "\n[a](../mpe/b.go)", []string{`docs/x.md:2: the link's target "../mpe/b.go" does not exist`}},
		{"path", "in `mpe/b.go` and `mpe/c/`",
			[]string{`docs/x.md:1: the path "mpe/b.go" does not exist`,
				`docs/x.md:1: the path "mpe/c/" does not exist`}},
		{"functions", "| 1 | `Engine.Start` | `mpe/a.go` | x |\n| 2 | `New` | `mpe/a.go` |", nil},
		{"no function", "| 1 | `Engine.Stop` | `mpe/a.go` | x |",
			[]string{"docs/x.md:1: mpe/a.go declares no function Engine.Stop"}},
		{"a function of another type", "| 1 | `Peer.Start` | `mpe/a.go` | x |",
			[]string{"docs/x.md:1: mpe/a.go declares no function Peer.Start"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := check(fstest.MapFS{"mpe/a.go": code, "docs/x.md": {Data: []byte(tt.text)},
				"bin/y.md": {Data: []byte("`mpe/no`")}})
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
