package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// report is all that a run has found out. Its JSON form is what -json writes and
// show reads.
type report struct {
	Workload string  `json:"workload"`
	Unit     string  `json:"unit"`
	Machine  machine `json:"machine"`
	Rounds   int     `json:"rounds"`
	// Missing says which peers were not measured, and why.
	Missing []string   `json:"missing,omitempty"`
	Sides   []measured `json:"sides"`
}

// measured is a side with its figures.
type measured struct {
	side
	// Verified is how many messages were, in all rounds: every one.
	Verified int       `json:"verified_messages"`
	Median   []point   `json:"median"`
	Rounds   [][]point `json:"rounds"`
}

// finish sums up when all rounds are done.
func (r *report) finish() {
	for i := range r.Sides {
		r.Sides[i].Median = medians(r.Sides[i].Rounds)
	}
	r.Machine.LoadAfter = loadAverage()
}

// side returns the side of that key, or nil.
func (r *report) side(key string) *measured {
	for i := range r.Sides {
		if r.Sides[i].Key == key {
			return &r.Sides[i]
		}
	}
	return nil
}

// ns returns the steps' numbers.
func (r *report) ns() []int {
	var ns []int
	if len(r.Sides) > 0 {
		for _, p := range r.Sides[0].Median {
			ns = append(ns, p.N)
		}
	}
	return ns
}

func (r *report) save(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o666)
}

// load reads what save has written.
func load(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

// check refuses a file from which no table can be made.
func (r *report) check() error {
	if workloads[r.Workload] == nil {
		return fmt.Errorf("there is no workload %q", r.Workload)
	}
	steps := len(r.ns())
	for _, s := range r.Sides {
		if len(s.Median) != steps || steps == 0 {
			return fmt.Errorf("%s has %d medians for %d steps", s.Name, len(s.Median), steps)
		}
		for _, round := range s.Rounds {
			if len(round) != steps {
				return fmt.Errorf("%s has a round of %d figures for %d steps", s.Name, len(round), steps)
			}
		}
	}
	return nil
}
