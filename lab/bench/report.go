package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Report is the result of a run. WriteJSON writes it as JSON, and Load reads it back.
type Report struct {
	Machine Machine `json:"machine"`
	// Command is the command line of the run.
	Command string `json:"command,omitempty"`
	Rounds  int    `json:"rounds"`
	// Missing lists the measurements that were omitted, with the reasons.
	Missing []string `json:"missing,omitempty"`
	// Failed lists the sides that failed, with the workloads in which they failed.
	Failed  []string `json:"failed,omitempty"`
	Results []Result `json:"results,omitempty"`
	// Targets, Tables and Notes are only set in archived runs.
	Targets []TargetResult `json:"targets,omitempty"`
	Tables  []Table        `json:"tables,omitempty"`
	Notes   []Note         `json:"notes,omitempty"`

	// The fields below are computed from the results.

	Growth []Growth `json:"growth,omitempty"`
	Ratios []Ratio  `json:"ratios,omitempty"`
}

// Result is the result of a workload.
type Result struct {
	Workload string     `json:"workload"`
	Unit     string     `json:"unit"`
	Sides    []Measured `json:"sides"`

	// archived holds the ratios of an archived run, which does not contain the rounds to compute them from.
	archived []Ratio
}

// Measured holds the figures of one side in a workload.
type Measured struct {
	Side
	// Verified is the number of messages in all rounds and attempts. All of them were verified.
	Verified int `json:"verified_messages"`
	// Memory is the peak memory in KiB of a single process of the side.
	Memory int `json:"peak_memory_kib,omitempty"`
	Figures
	// Disturbed holds the figures measured with a neighbour on the same processors, or nil.
	Disturbed *Figures `json:"disturbed,omitempty"`
}

// Figures holds what was measured for a side, in all rounds.
type Figures struct {
	// Cut lists the steps that would have exceeded their share of time.
	Cut    []CutStep `json:"cut,omitempty"`
	Median []Point   `json:"median"`
	Rounds [][]Point `json:"rounds,omitempty"`
	// Attempts lists all measurements in order. It is empty if cache line times are unknown.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// addAttempt adds an attempt at a measurement. Its points form a new round unless the attempt was discarded.
func (f *Figures) addAttempt(a Attempt, points []Point) {
	switch {
	case a.Discarded:
		a.Points = points
	case len(points) > 0:
		f.Rounds = append(f.Rounds, points)
	}
	if a.lineTime() > 0 {
		f.Attempts = append(f.Attempts, a)
	}
}

// removeStep removes a step from all rounds.
func (f *Figures) removeStep(c CutStep) {
	f.Cut = append(f.Cut, c)
	for i := range f.Rounds {
		f.Rounds[i] = slices.DeleteFunc(f.Rounds[i], func(p Point) bool { return p.N == c.N })
	}
	f.Rounds = slices.DeleteFunc(f.Rounds, func(points []Point) bool { return len(points) == 0 })
}

// findCut returns the Cut for step n, or nil.
func (f *Figures) findCut(n int) *CutStep {
	i := slices.IndexFunc(f.Cut, func(c CutStep) bool { return c.N == n })
	if i < 0 {
		return nil
	}
	return &f.Cut[i]
}

// computeMedians computes the medians of the rounds.
func (f *Figures) computeMedians() {
	f.Median = nil
	if len(f.Rounds) > 0 {
		f.Median = medians(f.Rounds)
	}
}

// checkSteps returns an error unless all rounds have the same steps.
func (f *Figures) checkSteps() error {
	if len(f.Cut) == 0 && len(f.Median) == 0 && (len(f.Rounds) == 0 || len(f.Rounds[0]) == 0) {
		return errors.New("there are no figures")
	}
	for _, round := range f.Rounds {
		if !slices.EqualFunc(round, f.Rounds[0], func(a, b Point) bool { return a.N == b.N }) {
			return errors.New("the rounds have different steps")
		}
	}
	return nil
}

// computeDerived computes medians, ratios and growth, and removes sides without figures. For an archived run, which
// contains no rounds, it keeps the stored values.
func (r *Report) computeDerived() {
	archived := r.isArchived()
	for i := range r.Results {
		res := &r.Results[i]
		if archived {
			res.archived = slices.DeleteFunc(slices.Clone(r.Ratios),
				func(v Ratio) bool { return v.Workload != res.Workload })
			continue
		}
		res.Sides = slices.DeleteFunc(res.Sides, func(m Measured) bool { return m.isEmpty() })
		for k := range res.Sides {
			measured := &res.Sides[k]
			measured.computeMedians()
			if measured.Disturbed != nil && measured.Disturbed.isEmpty() {
				measured.Disturbed = nil // it failed
			}
			if measured.Disturbed != nil {
				measured.Disturbed.computeMedians()
			}
		}
	}
	if !archived {
		r.Growth = r.growth()
		r.Ratios = r.ratios()
	}
}

// isEmpty reports whether nothing was measured.
func (f *Figures) isEmpty() bool { return len(f.Rounds)+len(f.Cut) == 0 }

// result returns the result of a workload, or nil.
func (r *Report) result(workload string) *Result {
	for i := range r.Results {
		if r.Results[i].Workload == workload {
			return &r.Results[i]
		}
	}
	return nil
}

// disturbedResult returns the result with a neighbour. It contains only the sides that were measured with one.
func (r *Result) disturbedResult() *Result {
	result := &Result{Workload: r.Workload, Unit: r.Unit}
	for _, s := range r.Sides {
		if s.Disturbed != nil {
			s.Figures, s.Disturbed = *s.Disturbed, nil
			result.Sides = append(result.Sides, s)
		}
	}
	return result
}

// side returns the side with the given key, or nil. A nil side has no points.
func (r *Result) side(key string) *Measured {
	for i := range r.Sides {
		if r.Sides[i].Key == key {
			return &r.Sides[i]
		}
	}
	return nil
}

// stepNumbers returns the n of all steps in ascending order.
func (r *Result) stepNumbers() []int {
	var ns []int
	for _, s := range r.Sides {
		for _, p := range s.Median {
			ns = append(ns, p.N)
		}
		for _, c := range s.Cut {
			ns = append(ns, c.N)
		}
	}
	slices.Sort(ns)
	return slices.Compact(ns)
}

// stepIndex returns the index of step n, or -1.
func (f *Figures) stepIndex(n int) int {
	return slices.IndexFunc(f.Median, func(p Point) bool { return p.N == n })
}

// point returns the medians at step n, or nil.
func (f *Figures) point(n int) *Point {
	if i := f.stepIndex(n); i >= 0 {
		return &f.Median[i]
	}
	return nil
}

// point returns the medians at step n, or nil.
func (m *Measured) point(n int) *Point {
	if m == nil {
		return nil
	}
	return m.Figures.point(n)
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "\t")
	return e.Encode(r)
}

// Save writes the report to a file as JSON.
func (r *Report) Save(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := r.WriteJSON(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Load reads a file written by Save. It computes medians, ratios and growth again, except for an archived run.
func Load(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text)
}

// Parse parses the JSON of a report. name is the file name with which errors begin.
func Parse(name string, text []byte) (*Report, error) {
	var report Report
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := report.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	report.computeDerived()
	return &report, nil
}

// validate returns an error if the report lacks data that the tables need.
func (r *Report) validate() error {
	if len(r.Results)+len(r.Targets)+len(r.Tables) == 0 {
		return fmt.Errorf("there are no results in it")
	}
	for _, res := range r.Results {
		if _, err := workloadNamed(res.Workload); err != nil {
			return err
		}
		for _, measured := range res.Sides {
			err := measured.checkSteps()
			if err == nil && measured.Disturbed != nil {
				err = measured.Disturbed.checkSteps()
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", res.Workload, measured.Key, err)
			}
		}
	}
	return nil
}
