package impair

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocument checks that docs/impair.md describes every word and its media, and that its script and rules can
// be parsed.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "impair.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for line := range strings.Lines(string(page)) {
		if line[0] != '|' {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|\n "), "|")
		for name := range strings.SplitSeq(cells[0], ",") {
			if name = strings.TrimSpace(name); strings.HasPrefix(name, "`") {
				rows[strings.Trim(name, "`")] = line
			}
		}
	}
	yes := map[bool]string{true: "yes", false: ""}
	for _, w := range Words() {
		cells := strings.Split(rows[w.Name], "|")
		switch {
		case len(cells) < 4:
			t.Errorf("%s is not in a table", w.Name)
		case w.Fault && (len(cells) != 7 || strings.TrimSpace(cells[3]) != yes[w.Media&Datagrams != 0] ||
			strings.TrimSpace(cells[4]) != yes[w.Media&Streams != 0]):
			t.Errorf("%s is for %v: %s", w.Name, w.Media, rows[w.Name])
		}
	}
	_, block, _ := strings.Cut(string(page), "```\nseed: 7\n")
	block, _, _ = strings.Cut(block, "```")
	if s, err := Parse(strings.NewReader("seed: 7\n"+block), "impair.md"); err != nil || len(s.Rules) != 4 {
		t.Errorf("%+v, %v", s, err)
	}
}
