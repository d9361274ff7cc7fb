package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the kind of a side.
type Kind string

// Kinds of sides.
const (
	// Ours is zrlmpid, over one of its links.
	Ours Kind = "ours"
	// Limit is a limit of the machine, without MPI.
	Limit Kind = "limit"
	// Peer is another MPI library.
	Peer Kind = "peer"
	// Upstream is the CPU library of ZRLMPI's authors.
	Upstream Kind = "upstream"
)

// Group is the medium of a side's messages. Sides of the same group are compared.
type Group string

// Groups of sides.
const (
	Network Group = "network"
	Memory  Group = "memory"
)

// Side is a participant of the comparison.
type Side struct {
	// Key is short and unique. Name is for people.
	Key     string `json:"key"`
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	Group   Group  `json:"group"`
	Version string `json:"version,omitempty"`
	Command string `json:"command"`
	// Method is the broadcast method, if the side exists only for it. With is the key of the side in whose processes it
	// is measured.
	Method string `json:"method,omitempty"`
	With   string `json:"with,omitempty"`
}

// together reports whether both sides are measured in the same processes, in turn.
func (s *Side) together(other *Side) bool {
	return cmp.Or(s.With, s.Key) == cmp.Or(other.With, other.Key)
}

// side is a Side that can be run.
type side struct {
	Side
	// parts returns the sides that are measured in turn in one run of the same ranks, for a workload. If it is nil,
	// that is only the side itself.
	parts func(*workload) []part
	// steps returns the steps of a workload that the side supports. If it is nil, it supports all.
	steps func(*workload, []step) []step
	// optional means that a failure is reported as missing.
	optional bool
	// run runs all ranks. Rank 0's output is written immediately.
	run func(context.Context, job, io.Writer) error
}

// part is one of the sides that are measured in one run, with its method.
type part struct {
	Side
	method method
}

// job is a group of steps of a workload with the same number of ranks.
type job struct {
	w     *workload
	parts []part
	ranks int
	steps []step
	// share is the approximate time limit of a step; 0 means none.
	share time.Duration
	// warm is the time for which the ranks of an MPI repeat the first step before it is measured.
	warm time.Duration
	// dir is a directory for files. profile is the prefix of the names of CPU profiles, or "".
	dir, profile string
}

// texts returns the arguments of the ranks of an MPI: the warm-up time and the steps.
func (j *job) texts() []string {
	return append([]string{warmPrefix + strconv.FormatInt(j.warm.Milliseconds(), 10)}, texts(j.steps)...)
}

// does returns the given steps that the side supports.
func (s *side) does(w *workload, steps []step) []step {
	if s.steps == nil {
		return steps
	}
	return s.steps(w, steps)
}

// in returns the parts of the side in a workload.
func (s *side) in(w *workload) []part {
	if s.parts == nil {
		return []part{{Side: s.Side}}
	}
	return s.parts(w)
}

// upTo returns the steps up to n.
func upTo(n int, steps []step) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.n > n })
}

// measure runs the steps of a workload and returns their points. A step that would exceed its share of time is run with
// fewer iterations or cut. After several consecutive cuts, the remaining steps are not tried.
func (s *side) measure(ctx context.Context, j job, steps []step) (outcome, error) {
	sum := outcome{points: make([][]Point, len(j.parts))}
	steps = slices.Clone(steps)
	inRow := 0
	for len(steps) > 0 {
		if inRow == cutsMost {
			for _, st := range steps {
				sum.cut = append(sum.cut, Cut{N: st.n})
			}
			break
		}
		j.ranks = j.w.size(steps[0])
		n := 1
		for n < len(steps) && j.w.size(steps[n]) == j.ranks {
			n++
		}
		j.steps = steps[:n]
		o, slow, err := s.attempt(ctx, j)
		if err != nil {
			return outcome{}, err
		}
		sum.add(&o)
		switch {
		case slow == nil:
			steps, inRow = steps[n:], 0
			continue
		case slow.done > 0:
			inRow = 0
		}
		steps = steps[slow.done:]
		if slow.iterations > 0 {
			sum.reduced = append(sum.reduced, step{steps[0].n, slow.iterations})
			steps[0].iterations = slow.iterations
			continue
		}
		sum.cut = append(sum.cut, slow.cut)
		steps = steps[1:]
		inRow++
	}
	return sum, nil
}

// attempt runs the steps of a job, up to the first one that is too slow.
func (s *side) attempt(ctx context.Context, j job) (outcome, *slowStep, error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := newWatch(j, cancel)
	err := s.run(limited, j, w)
	out, slow := w.end()
	if slow != nil {
		j.steps = j.steps[:slow.done]
	}
	if err != nil && !(errors.Is(context.Cause(limited), errSlow) && ctx.Err() == nil) {
		return outcome{}, nil, err
	}
	o, err := parseOutput(out, j.w, j.steps, len(j.parts))
	return o, slow, err
}

// findSides returns all available sides, and describes the missing ones. If only is not empty, it looks up only these.
func findSides(ctx context.Context, dir string, only []string) (sides []side, missing []string, err error) {
	wanted := func(key string) bool { return len(only) == 0 || slices.Contains(only, key) }
	known := []string{}
	families := []family{rawFamily(), ourFamily()}
	for i := range libraries {
		families = append(families, libraries[i].family())
	}
	for _, f := range append(families, upstreamFamily()) {
		known = append(known, f.keys...)
		if !slices.ContainsFunc(f.keys, wanted) {
			continue
		}
		found, gone, err := f.find(ctx, dir, wanted)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range found {
			if wanted(s.Key) || s.parts != nil { // its parts are filtered by wanted
				sides = append(sides, s)
			}
		}
		missing = append(missing, gone...)
	}
	for _, key := range only {
		if !slices.Contains(known, key) {
			return nil, nil, usagef("there is no side %q; there are %s", key, strings.Join(known, ", "))
		}
	}
	return sides, missing, nil
}

// family is a set of sides that are looked up together.
type family struct {
	keys []string
	// find prepares the sides, and describes the missing ones.
	find func(ctx context.Context, dir string, wanted func(key string) bool) (found []side, missing []string, err error)
}

// UsageError reports invalid options.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
