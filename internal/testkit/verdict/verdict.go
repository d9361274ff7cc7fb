// Package verdict is for tests that inject a known cause of a hang: it compares the diagnosis with the cause, and
// writes the results to a page.
package verdict

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/diagnosis"
)

// Verdict rates a diagnosis by comparing it with the known cause.
type Verdict uint8

// The verdicts, the best first.
const (
	Right   Verdict = iota // certain, and the cause
	Listed                 // a list that has the cause
	Silent                 // no cause named
	Missing                // a list without the cause
	Wrong                  // certain, and another cause
)

// String returns the word that pages use.
func (v Verdict) String() string {
	return []string{"right", "listed", "silent", "missing", "wrong"}[v]
}

// Compare compares a diagnosis with the known cause. fits reports whether a diagnosed cause, at a rank or between a
// rank and a peer, is the known one. The verdict is Wrong if any finding is wrong, and otherwise the best verdict of
// all findings.
func Compare(d *diagnosis.Diagnosis, fits func(cause string, rank, peer int) bool) Verdict {
	best := Silent
	for i := range d.Findings {
		finding := &d.Findings[i]
		is, found := Missing, fits(finding.Cause, finding.Rank, finding.Peer)
		switch {
		case finding.Certain && found:
			is = Right
		case finding.Certain:
			is = Wrong
		case found && len(finding.Possible) == 0,
			slices.ContainsFunc(finding.Possible,
				func(p diagnosis.Possibility) bool { return fits(string(p.Cause), p.Rank, p.Peer) }):
			is = Listed
		}
		if best == Silent || is == Wrong || best != Wrong && is < best {
			best = is
		}
	}
	return best
}

// Counts holds, for each verdict, the number of answers that received it.
type Counts [Wrong + 1]int

// Columns are the column names of Counts.Cells.
var Columns = []string{"answers", "right", "list", "silent", "missing", "wrong"}

// Cells returns the number of answers, and the number with each verdict.
func (c Counts) Cells() []string {
	cells, answers := make([]string, len(c)), 0
	for v, n := range c {
		cells[v] = strconv.Itoa(n)
		answers += n
	}
	return slices.Insert(cells, 0, strconv.Itoa(answers))
}

// Write writes title, a link to data/why-NAME.csv, and a table of totals to a section of a page. It writes kinds to
// that file next to the page. The first row of each table contains the column names.
func Write(page, name, title string, totals, kinds [][]string) error {
	file := "why-" + name + ".csv"
	if err := WriteTable(page, name, fmt.Sprintf("%s. By kind: [%s](data/%s)", title, file, file), totals); err != nil {
		return err
	}
	var data bytes.Buffer
	if err := csv.NewWriter(&data).WriteAll(kinds); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(page), "data", file), data.Bytes(), 0o644)
}

// WriteTable replaces the section of a page between the comments "<!-- name -->" and "<!-- /name -->" by title and a
// table. The first row contains the column names.
func WriteTable(page, name, title string, table [][]string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- /%s -->\n", name)
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		return fmt.Errorf("%s has no section %q", page, name)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s%s\n\n", begin, title)
	for i, row := range table {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			text.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return os.WriteFile(page, []byte(before+text.String()+end+after), 0o644)
}
