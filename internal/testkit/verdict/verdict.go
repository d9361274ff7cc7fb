// Package verdict is for tests that put a known cause into a hang: it compares the diagnosis with the cause, and writes
// the
// results to a page.
package verdict

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/diagnosis"
)

// Verdict is how a diagnosis compares with the cause.
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

// Compare compares a diagnosis with a cause. fits reports whether a cause between a rank and a peer is that cause. The
// verdict is
// Wrong if any finding is, and otherwise that of the best finding.
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

// Write replaces the section of a page between the comments "<!-- name -->" and "<!-- /name -->".
func Write(page, name, text string) error {
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
	return os.WriteFile(page, []byte(before+begin+text+end+after), 0o644)
}
