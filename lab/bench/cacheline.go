package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The host of a virtual machine moves its virtual processors among physical ones. Between some physical processors,
// passing a cache line takes several times longer than between others. A slow phase lasts from a tenth of a second to
// minutes, and slows down the side that is being measured.
const (
	// slowLineFactor determines when the transfer of a cache line counts as slow: if it took more than this factor
	// times the shortest transfer in the run.
	slowLineFactor = 1.5
	// maxRepeats limits how often one measurement is repeated.
	maxRepeats = 3
)

// Attempt is one measurement of a side in a round.
type Attempt struct {
	// Round is the number of the round, from 1.
	Round int `json:"round"`
	// LineBefore and LineAfter are the times in ns that a cache line took from one processor to another, before and
	// after the measurement.
	LineBefore float64 `json:"cache_line_before_ns"`
	LineAfter  float64 `json:"cache_line_after_ns"`
	// Discarded means that the cache line was slow, so the measurement was repeated and its Points do not count. The
	// points of attempts that count are in the rounds of the side instead.
	Discarded bool    `json:"discarded,omitempty"`
	Points    []Point `json:"points,omitempty"`
}

// lineTime returns the longer of the attempt's two cache line times, or 0 if they are unknown.
func (a *Attempt) lineTime() float64 { return max(a.LineBefore, a.LineAfter) }

// isSlow reports whether a cache line was slow before or after the attempt. least is the shortest cache line time of
// the run, with which it is compared.
func (a *Attempt) isSlow(least float64) bool { return a.lineTime() > slowLineFactor*least }

// discardSlow discards the latest attempts with a slow cache line, and returns the measurements to repeat.
func discardSlow(done []scheduled, least float64) (again []scheduled) {
	for _, t := range done {
		if t.failed || t.last == nil || !t.last.isSlow(least) {
			continue
		}
		t.last.Discarded = true
		again = append(again, t)
	}
	return again
}

// lineTime measures the current cache line time in ns. It returns 0 if the time is unknown.
func (r *runner) lineTime() float64 {
	ns, err := r.moveLine()
	if err != nil {
		r.reportMissing(fmt.Sprintf("the time to move a cache line is unknown from now on: %v", err))
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

// slowRounds returns the rounds that count although a cache line was slow, and the number of discarded attempts.
func (f *Figures) slowRounds(least float64) (slow []string, discarded int) {
	for _, a := range f.Attempts {
		switch {
		case a.Discarded:
			discarded++
		case a.isSlow(least):
			slow = append(slow, fmt.Sprint(a.Round))
		}
	}
	return slow, discarded
}

// lineNotes describes the cache line times of the run, and how they affected the given results.
func (r *Report) lineNotes(results []Result) []string {
	m := &r.Machine
	if m.LineLeast == 0 {
		return nil
	}
	first := fmt.Sprintf("a cache line from one processor to another: at least %s ns, median %s ns",
		formatFigure(m.LineLeast), formatFigure(m.LineP50))
	if r.isArchived() { // the notes of an archived run contain the rest
		return []string{first}
	}
	again, notes := r.slowLines(results)
	return append([]string{fmt.Sprintf("%s; measurements done again since it was slow: %d", first, again)}, notes...)
}

// slowLines returns the number of measurements that were repeated because a cache line was slow, and notes about rounds
// that count although a cache line was slow.
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
			measured := &results[i].Sides[k]
			name := cmp.Or(measured.With, measured.Key)
			if slices.Contains(seen, name) {
				continue // measured together with a previous side
			}
			seen = append(seen, name)
			note(name, &measured.Figures)
			if measured.Disturbed != nil {
				note(name+" disturbed", measured.Disturbed)
			}
		}
		if len(sides) > 0 {
			notes = append(notes, fmt.Sprintf("rounds of %s while a cache line took over %v times the least: %s",
				results[i].Workload, slowLineFactor, strings.Join(sides, "; ")))
		}
	}
	return again, notes
}
