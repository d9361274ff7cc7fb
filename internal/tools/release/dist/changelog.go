package dist

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/chglog"
)

// Section is a section of CHANGELOG.md.
type Section struct {
	// Version is a semantic version, or "Unreleased".
	Version string
	// Date is the date of the version, such as 2026-12-24, or empty.
	Date string
	// Text is the section's Markdown, without its heading.
	Text string
	// Entries holds the entries as plain text, each in one line: "Added: manual pages."
	Entries []string
}

// ErrChangelog is wrapped by errors about CHANGELOG.md.
var ErrChangelog = errors.New("CHANGELOG.md is not in the format of Keep a Changelog")

const unreleased = "Unreleased"

var (
	sectionHeading = regexp.MustCompile(`(?m)^## (.*)$`)
	sectionTitle   = regexp.MustCompile(`^\[(Unreleased|\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)\](?: - (\d{4}-\d\d-\d\d))?$`)
	linkReference  = regexp.MustCompile(`(?m)^\[[^\]]+\]: .*\n?`)
	linkList       = regexp.MustCompile(` \((?:\[[^\]]+\]\([^)]+\)(?:, )?)+\)`)
	markdownLink   = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
)

// ParseChangelog returns the sections of a changelog: Unreleased, and at least one version.
func ParseChangelog(text string) ([]Section, error) {
	text = linkReference.ReplaceAllString(text, "")
	headings := sectionHeading.FindAllStringSubmatchIndex(text, -1)
	var sections []Section
	for i, heading := range headings {
		end := len(text)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		line := text[heading[2]:heading[3]]
		title := sectionTitle.FindStringSubmatch(line)
		if title == nil {
			return nil, fmt.Errorf("heading %q: %w", line, ErrChangelog)
		}
		if (i == 0) != (title[1] == unreleased) {
			return nil, fmt.Errorf("heading %q: Unreleased is the first section: %w", line, ErrChangelog)
		}
		if title[2] != "" {
			if _, err := time.Parse(time.DateOnly, title[2]); err != nil {
				return nil, fmt.Errorf("heading %q: %w: %w", line, err, ErrChangelog)
			}
		}
		body := strings.TrimSpace(text[heading[1]:end])
		sections = append(sections, Section{title[1], title[2], body, entries(body)})
	}
	if len(sections) < 2 {
		return nil, fmt.Errorf("no section of a version: %w", ErrChangelog)
	}
	return sections, nil
}

// entries returns the entries of a section as plain text.
func entries(body string) (all []string) {
	kind, open := "", false
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "### "):
			kind, open = strings.TrimPrefix(line, "### "), false
		case strings.HasPrefix(line, "- "):
			all, open = append(all, kind+": "+strings.TrimPrefix(line, "- ")), true
		case open && strings.HasPrefix(line, "  "):
			all[len(all)-1] += " " + strings.TrimSpace(line)
		default:
			open = false
		}
	}
	for i, entry := range all {
		entry = markdownLink.ReplaceAllString(linkList.ReplaceAllString(entry, ""), "$1")
		all[i] = strings.ReplaceAll(entry, "`", "")
	}
	return all
}

// isSnapshot reports whether the release is a snapshot before, or after, the newest version of the changelog.
func (r *Release) isSnapshot() (before, after bool) {
	return strings.Contains(r.Version, "~"), strings.Contains(r.Version, "+")
}

// writeChangelogs writes the changelogs of the packages: Debian's, and one from which nfpm makes RPM's.
func (r *Release) writeChangelogs() error {
	before, after := r.isSnapshot()
	versions := slices.Clone(r.Changes)
	switch {
	case after:
		versions[0].Version = r.FileVersion()
	case before:
		versions[1].Entries = slices.Concat(versions[0].Entries, versions[1].Entries)
		fallthrough
	default:
		versions = versions[1:]
		versions[0].Version = r.FileVersion()
	}
	var rpm chglog.ChangeLogEntries
	var debian strings.Builder
	for i, section := range versions {
		date := r.Time
		if i > 0 {
			var err error
			if date, err = time.Parse(time.DateOnly, section.Date); err != nil {
				return fmt.Errorf("version %s: %w: %w", section.Version, err, ErrChangelog)
			}
		}
		version := PackageVersion(section.Version) + "-" + packageRelease
		entry := &chglog.ChangeLog{Semver: version, Date: date, Packager: maintainer}
		fmt.Fprintf(&debian, "zrlmpid (%s) stable; urgency=medium\n\n", version)
		for _, text := range section.Entries {
			entry.Changes = append(entry.Changes, &chglog.ChangeLogChange{Note: text})
			debian.WriteString(wrap("  * ", "    ", text))
		}
		fmt.Fprintf(&debian, "\n -- %s  %s\n\n", maintainer, date.Format(time.RFC1123Z))
		rpm = append(rpm, entry)
	}
	if err := rpm.Save(rpmChangelog); err != nil {
		return err
	}
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(writer, debian.String()); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(debianChangelog, compressed.Bytes(), 0o644)
}

// wrap breaks a text into lines of at most 80 bytes. The first begins with first, the others with other.
func wrap(first, other, text string) string {
	var b strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > 80 {
			b.WriteString(line + "\n")
			line = other
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}

// notesFile is the release's page, in Markdown.
const notesFile = "NOTES.md"

// writeNotes writes the page of the release: its section of the changelog, with links that work elsewhere.
func (r *Release) writeNotes(context.Context) error {
	text := r.Changes[1].Text
	if _, after := r.isSnapshot(); after {
		text = r.Changes[0].Text
	}
	text = markdownLink.ReplaceAllStringFunc(text, func(link string) string {
		parts := markdownLink.FindStringSubmatch(link)
		if strings.Contains(parts[2], "://") {
			return link
		}
		return fmt.Sprintf("[%s](%s/blob/%s/%s)", parts[1], project, r.Commit, parts[2])
	})
	return os.WriteFile(r.file(notesFile), []byte("# zrlmpid "+r.FileVersion()+"\n\n"+text+"\n"), 0o644)
}
