package dist

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseChangelog(t *testing.T) {
	const text = `# Changelog

## [Unreleased]

### Fixed

- A bug.

## [1.0.0-rc.1] - 2026-01-02

The first.

### Added

**Tools**

- A command, ` + "`zrlctl`" + ` ([page](docs/a.md), [other](docs/b.md)), that
  [prints](docs/c.md) everything.

A paragraph.
- Another.

[1.0.0-rc.1]: https://example.com
`
	sections, err := ParseChangelog(text)
	if err != nil || len(sections) != 2 {
		t.Fatalf("%+v, %v", sections, err)
	}
	if s := sections[0]; s.Version != "Unreleased" || s.Date != "" || !slices.Equal(s.Entries, []string{"Fixed: A bug."}) {
		t.Errorf("%+v", s)
	}
	want := []string{"Added: A command, zrlctl, that prints everything.", "Added: Another."}
	if s := sections[1]; s.Version != "1.0.0-rc.1" || s.Date != "2026-01-02" || !slices.Equal(s.Entries, want) ||
		!strings.HasPrefix(s.Text, "The first.") || strings.Contains(s.Text, "example.com") {
		t.Errorf("%+v", s)
	}

	for _, bad := range []string{
		"", "## [Unreleased]\n", "## [1.0.0] - 2026-01-02\n", "## [Unreleased]\n## 1.0.0 - 2026-01-02\n",
		"## [Unreleased]\n## [1.0] - 2026-01-02\n", "## [Unreleased]\n## [1.0.0] - 2026-13-02\n",
		"## [Unreleased]\n## [1.0.0] - soon\n", "## [Unreleased]\n## [1.0.0]\n## [Unreleased]\n",
	} {
		if sections, err := ParseChangelog(bad); !errors.Is(err, ErrChangelog) {
			t.Errorf("%q: %+v, %v", bad, sections, err)
		}
	}
}

func TestChangelogOfProject(t *testing.T) {
	text, err := os.ReadFile("../../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseChangelog(string(text)); err != nil {
		t.Error(err)
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"short", "  * short\n"},
		{strings.Repeat("a", 90) + " b", "  * " + strings.Repeat("a", 90) + "\n    b\n"},
		{strings.Repeat("1234 ", 20), "  * " + strings.TrimSpace(strings.Repeat("1234 ", 15)) + "\n    " +
			strings.TrimSpace(strings.Repeat("1234 ", 5)) + "\n"},
	} {
		if got := wrap("  * ", "    ", tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestNotReleasable checks that a commit, a changelog or options that do not permit a release are errors.
func TestNotReleasable(t *testing.T) {
	sound := func() *Release {
		return &Release{Options: Options{Version: "v1.0.0", Platforms: Platforms, GPGKey: "a",
			MinisignKey: "b"}, Changes: []Section{{Version: unreleased}, {Version: "1.0.0", Date: "2026-01-02"}}}
	}
	for _, program := range []string{"gpg", "minisign", "gh"} {
		folder := t.TempDir()
		if err := os.WriteFile(folder+"/"+program, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	}
	if err := sound().checkReleasable(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Release){
		"not the version of a tag": func(r *Release) { r.Version = "v1.0.0~1.gabc" },
		"not the newest version":   func(r *Release) { r.Version = "v1.0.1" },
		"a date":                   func(r *Release) { r.Changes[1].Date = "" },
		"not part of its section":  func(r *Release) { r.Changes[0].Entries = []string{"Added: more."} },
		"all platforms":            func(r *Release) { r.Platforms = Platforms[:1] },
		"GPG_KEY":                  func(r *Release) { r.GPGKey = "" },
		"MINISIGN_KEY":             func(r *Release) { r.MinisignKey = "" },
		"the program gh":           func(*Release) { t.Setenv("PATH", "/nowhere") },
	} {
		path := os.Getenv("PATH")
		r := sound()
		change(r)
		if err := r.checkReleasable(); !errors.Is(err, ErrNotReleasable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		t.Setenv("PATH", path)
	}
}

// TestPublish checks the command that publishes a release, with a program in place of gh.
func TestPublish(t *testing.T) {
	folder, into := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho \"$@\" >" + folder + "/arguments\n"
	if err := os.WriteFile(folder+"/gh", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(into+"/SHA256SUMS", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	for version, prerelease := range map[string]string{"v1.0.0-rc.1": " --prerelease", "v1.0.0": ""} {
		r := &Release{Options: Options{Version: version, Into: into}}
		if err := r.publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(folder + "/arguments")
		want := "release create " + version + " --repo zrlmpi/zrlmpid --verify-tag --title zrlmpid " + version[1:] +
			" --notes-file " + into + "/NOTES.md" + prerelease + " " + into + "/SHA256SUMS\n"
		if err != nil || string(got) != want {
			t.Errorf("gh %s, %v; want %s", got, err, want)
		}
	}
}

func TestIdentify(t *testing.T) {
	for want, text := range map[string]string{
		"MIT":          "Permission is hereby granted, free of\ncharge, to any person obtaining a copy",
		"BSD-3-Clause": "Redistribution and use in source and binary forms ... used to endorse or promote products",
		"BSD-2-Clause": "Redistribution and use in\n\tsource and binary forms",
		"Apache-2.0":   "   Apache License\n  Version 2.0, January 2004",
		"":             "All rights reserved.",
	} {
		if got := identify(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
