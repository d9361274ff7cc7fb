package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A host moves the processors of a virtual machine among its own, and a cache line takes
// several times longer between some of these than between others. Such a phase lasts for a
// tenth of a second to minutes, and slows down whatever side is measured meanwhile.
const (
	// slowLine is by how many times a cache line may exceed its least time of the run, before
	// and after a measurement.
	slowLine = 1.5
	// againMost is how often a measurement is done again.
	againMost = 3
)

// Attempt is a measurement of a side in a round.
type Attempt struct {
	// Round is counted from 1.
	Round int `json:"round"`
	// LineBefore and LineAfter are the times in ns in which a cache line moved from one
	// processor to another, before the measurement and after it.
	LineBefore float64 `json:"cache_line_before_ns"`
	LineAfter  float64 `json:"cache_line_after_ns"`
	// Discarded: it was measured again, since the cache line was slow, and its Points do not
	// count. Those that do are among the side's rounds, and not here.
	Discarded bool    `json:"discarded,omitempty"`
	Points    []Point `json:"points,omitempty"`
}

// line returns the longer time of a cache line; 0 is unknown.
func (a *Attempt) line() float64 { return max(a.LineBefore, a.LineAfter) }

// slow reports whether a cache line took too long, compared with its least time.
func (a *Attempt) slow(least float64) bool { return a.line() > slowLine*least }

// discardSlow discards what was measured last where a cache line was slow, and returns what
// is to be measured again.
func discardSlow(done []scheduled, least float64) (again []scheduled) {
	for _, t := range done {
		if t.failed || t.last == nil || !t.last.slow(least) {
			continue
		}
		t.last.Discarded = true
		again = append(again, t)
	}
	return again
}

// lineTime returns how long it takes to move a cache line now, in ns. 0 is unknown, as it is
// after an error.
func (r *runner) lineTime() float64 {
	ns, err := r.moveLine()
	if err != nil {
		r.miss(fmt.Sprintf("the time to move a cache line is unknown from now on: %v", err))
		r.moveLine = func() (float64, error) { return 0, nil }
		return 0
	}
	if ns > 0 {
		r.lines = append(r.lines, ns)
		m := &r.report.Machine
		m.LineLeast, m.LineP50 = slices.Min(r.lines), median(slices.Clone(r.lines))
	}
	return ns
}

// slowRounds returns the rounds that count although a cache line was slow, compared with its
// least time, and how many attempts were discarded.
func (f *Figures) slowRounds(least float64) (slow []string, discarded int) {
	for _, a := range f.Attempts {
		switch {
		case a.Discarded:
			discarded++
		case a.slow(least):
			slow = append(slow, fmt.Sprint(a.Round))
		}
	}
	return slow, discarded
}

// lineNotes describes the time of a cache line during the run and its effect on some workloads.
func (r *Report) lineNotes(results []Result) []string {
	m := &r.Machine
	if m.LineLeast == 0 {
		return nil
	}
	first := fmt.Sprintf("a cache line from one processor to another: at least %s ns, median %s ns", figure(m.LineLeast), figure(m.LineP50))
	if r.isArchived() { // its notes have the rest
		return []string{first}
	}
	again, notes := r.slowLines(results)
	return append([]string{fmt.Sprintf("%s; measurements done again since it was slow: %d", first, again)}, notes...)
}

// slowLines returns the number of measurements of some workloads that were repeated because a cache line was
// slow, and notes on the rounds that count although it was.
func (r *Report) slowLines(results []Result) (again int, notes []string) {
	least := r.Machine.LineLeast
	for i := range results {
		var sides, seen []string
		note := func(name string, f *Figures) {
			slow, discarded := f.slowRounds(least)
			again += discarded
			if len(slow) > 0 {
				sides = append(sides, name+" "+strings.Join(slow, ", "))
			}
		}
		for k := range results[i].Sides {
			s := &results[i].Sides[k]
			name := cmp.Or(s.With, s.Key)
			if slices.Contains(seen, name) {
				continue // it was measured together with one before
			}
			seen = append(seen, name)
			note(name, &s.Figures)
			if s.Disturbed != nil {
				note(name+" disturbed", s.Disturbed)
			}
		}
		if len(sides) > 0 {
			notes = append(notes, fmt.Sprintf("rounds of %s while a cache line took over %v times the least: %s", results[i].Workload, slowLine, strings.Join(sides, "; ")))
		}
	}
	return again, notes
}
