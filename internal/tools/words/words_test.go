package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const testList = `
id Habits = Quirks
id parked = deferred
id zrlmpi_repeats_total = zrlmpi_retransmissions_total
prose he = it
prose in vain = without effect
prose gave up = timed out
`

func TestCheck(t *testing.T) {
	l, err := parseList(testList)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file, text string
		want             []string // line and word
	}{
		{"identifier", "a.go", "package a\n\nvar Habits int\n", []string{"3 Habits"}},
		{"whole words only", "a.go", "package a\n\nvar myHabits, Habits2, unparked int // the\n", nil},
		{"identifier that is English, in a comment", "a.go", "package a\n\n// a parked car\nvar parked int\n",
			[]string{"4 parked"}},
		{"name of a metric in a string", "a.go", "package a\n\nvar x = \"zrlmpi_repeats_total\"\n",
			[]string{"3 zrlmpi_repeats_total"}},
		{"identifier in YAML and Lua", "a.yaml", "a: 1\nparked: true # he\n", []string{"2 parked", "2 he"}},
		{"English identifier in prose", "a.md", "The car is parked.\n", nil},
		{"other identifiers in prose", "a.md", "The metric `zrlmpi_repeats_total`.\n",
			[]string{"1 zrlmpi_repeats_total"}},
		{"phrase in any case", "a.md", "x\nIt waits. In Vain, and vain.\n", []string{"2 in vain"}},
		{"phrase across lines of Markdown", "a.md", "it gave\nup; gave it up\n", []string{"1 gave up"}},
		{"phrase across lines of a comment", "a.go", "package a\n\n// It gave\n// up.\nvar x int\n",
			[]string{"3 gave up"}},
		{"not across comments with code between", "a.go", "package a\n\nvar x int // gave\nvar y int // up\n", nil},
		{"phrase in a string", "a.go", "package a\n\nvar x = `a\nhe gave up`\n", []string{"4 he", "4 gave up"}},
		{"not in code", "a.go", "package a\n\nvar he, gave int\n", nil},
		{"only the beginning of a word", "a.md", "gave upstream, she, he's\n", []string{"1 he"}},
		{"HTML", "a.html", "<p>it gave up</p>", []string{"1 gave up"}},
		{"glossary", "docs/glossary.md", "Habits", nil},
		{"other folders", "bin/a.md", "Habits gave up", nil},
		{"other files", "a.bin", "gave up", nil},
		{"broken code", "a.go", "package \"gave up\n'", []string{"1 gave up"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := check(fstest.MapFS{tt.file: {Data: []byte(tt.text)}}, l)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range all {
				got = append(got, fmt.Sprint(f.line, " ", f.entry.text))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseListErrors(t *testing.T) {
	for text, want := range map[string]string{
		"id x":                     `line 1: "id x" is not "id NAME = USE"`,
		"word x = y":               `line 1: "word x = y" is not`,
		"\nprose a b =":            `line 2: "prose a b =" is not`,
		"id x = y\nid x = z":       `line 2: id "x" is listed twice`,
		"prose A b=y\nprose a B=z": `line 2: phrase "a B" is listed twice`,
	} {
		if _, err := parseList(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestList checks that the list in the repository is valid, and that a retired word in a file is found.
func TestList(t *testing.T) {
	text, err := os.ReadFile("retired.txt")
	if err != nil {
		t.Fatal(err)
	}
	l, err := parseList(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.entries {
		file, content := "a.md", "so "+e.text+" it is"
		if e.words == nil {
			file, content = "a.go", "package a\n\nvar "+e.text+" int"
		}
		if all := l.search(file, []byte(content)); !slices.ContainsFunc(all,
			func(f found) bool { return f.entry == e }) {
			t.Errorf("%q is not found in %q", e.text, content)
		}
	}
}

func TestFrequent(t *testing.T) {
	phrases, err := parseFrequent("# x\n100 those (of|that) = the noun\n5000 what = the noun\n")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"a.go":  {Data: []byte("package a\n\n// Those\n// of b; `what`.\nvar those = 1 // of\n")},
		"a.md":  {Data: []byte("One two. `those of`\n```\nthose of\n```\n")},
		"a.txt": {Data: []byte("those of")},
	}
	got, err := checkFrequent(files, phrases)
	want := []string{"\"those (of|that)\" occurs 1111.11 times in 10,000 words, more than 100.0: use the noun; " +
		"most often in a.go"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("phrases: %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{"x what = y", "1 what", "1 (what = y"} {
		if _, err := parseFrequent(text); err == nil {
			t.Errorf("%q is a list of frequent phrases", text)
		}
	}
}
