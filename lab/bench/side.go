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
	// Ours is zrlmpid, using one of its links.
	Ours Kind = "ours"
	// Limit is a limit of the machine, measured without MPI.
	Limit Kind = "limit"
	// Peer is another MPI library.
	Peer Kind = "peer"
	// Upstream is the library for CPUs by ZRLMPI's authors.
	Upstream Kind = "upstream"
)

// Group is the medium over which a side's messages travel. Sides in the same group are compared.
type Group string

// Groups of sides.
const (
	Network Group = "network"
	// Hosts are two network namespaces, each with one of two ranks.
	Hosts  Group = "hosts"
	Memory Group = "memory"
)

// groups lists all groups in the order of tables and plots.
var groups = []Group{Network, Hosts, Memory}

// Side is one of the compared ways to send messages, such as a library over TCP.
type Side struct {
	// Key is a short unique identifier, and Name the name for readers.
	Key     string `json:"key"`
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	Group   Group  `json:"group"`
	Version string `json:"version,omitempty"`
	Command string `json:"command"`
	// Method is the broadcast method if this side measures a method of another side. In that case, With is the key of
	// the other side, whose processes run the method too.
	Method string `json:"method,omitempty"`
	With   string `json:"with,omitempty"`
}

// sharesProcesses reports whether both sides are measured in the same processes.
func (s *Side) sharesProcesses(other *Side) bool {
	return cmp.Or(s.With, s.Key) == cmp.Or(other.With, other.Key)
}

// side is a Side together with the functions that run it.
type side struct {
	Side
	// parts returns the sides that one run of the same ranks measures in turn. If it is nil, the run measures only the
	// side itself.
	parts func(*workload) []part
	// steps returns the steps of a workload that the side supports. If it is nil, the side supports all steps.
	steps func(*workload, []step) []step
	// optional means that a failure of the side is reported as a missing measurement.
	optional bool
	// run runs all ranks. It writes the output of rank 0 as soon as there is any.
	run func(context.Context, job, io.Writer) error
}

// part is one of the sides measured in the same run, together with its broadcast method.
type part struct {
	Side
	method method
}

// job describes one run of a side: steps of a workload that all have the same number of ranks.
type job struct {
	w     *workload
	parts []part
	ranks int
	steps []step
	// budget is the approximate time limit of each step. 0 means that there is no limit.
	budget time.Duration
	// warm is the warm-up time: the ranks of an MPI library repeat the first step for that long before measurements
	// begin.
	warm time.Duration
	// hosts are the hosts of ranks 0 and 1, or nil if all ranks run on this host.
	hosts *hosts
	// dir is a directory for temporary files. profile is the prefix for the names of CPU profiles. If it is empty, no
	// profiles are written.
	dir, profile string
}

// arguments returns the command-line arguments for the ranks of an MPI library: the warm-up time and the steps.
func (j *job) arguments() []string {
	return append([]string{warmPrefix + strconv.FormatInt(j.warm.Milliseconds(), 10)}, stepArgs(j.steps)...)
}

// supportedSteps returns the given steps that the side supports.
func (s *side) supportedSteps(w *workload, steps []step) []step {
	if s.steps == nil {
		return steps
	}
	return s.steps(w, steps)
}

// partsFor returns the parts of the side that run a workload.
func (s *side) partsFor(w *workload) []part {
	if s.parts == nil {
		return []part{{Side: s.Side}}
	}
	return s.parts(w)
}

// stepsUpTo returns the steps with an n of at most the given value.
func stepsUpTo(n int, steps []step) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.n > n })
}

// measure runs the steps of a workload and returns their points. A step that would exceed its share of time runs with
// fewer iterations or is cut. After several consecutive cuts, the remaining steps are skipped.
func (s *side) measure(ctx context.Context, j job, steps []step) (outcome, error) {
	sum := outcome{points: make([][]Point, len(j.parts))}
	steps = slices.Clone(steps)
	inRow := 0
	for len(steps) > 0 {
		if inRow == cutsMost {
			for _, st := range steps {
				sum.cut = append(sum.cut, CutStep{N: st.n})
			}
			break
		}
		j.ranks = j.w.numRanks(steps[0])
		n := 1
		for n < len(steps) && j.w.numRanks(steps[n]) == j.ranks {
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

// attempt runs the steps of a job until one of them is too slow.
func (s *side) attempt(ctx context.Context, j job) (outcome, *slowStep, error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := newWatch(j, cancel)
	err := s.run(limited, j, w)
	out, slow := w.finish()
	if slow != nil {
		j.steps = j.steps[:slow.done]
	}
	if err != nil && !(errors.Is(context.Cause(limited), errSlow) && ctx.Err() == nil) {
		return outcome{}, nil, err
	}
	o, err := parseOutput(out, j.w, j.steps, len(j.parts))
	return o, slow, err
}

// findSides returns the sides that can be measured, and describes the missing ones. A non-empty only restricts the
// search to these keys.
func findSides(ctx context.Context, dir string, only []string) (sides []side, missing []string, err error) {
	wanted := func(key string) bool { return len(only) == 0 || slices.Contains(only, key) }
	known := []string{}
	families := []family{rawFamily(), ourFamily(), hostsFamily()}
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
		for _, m := range gone {
			if !slices.Contains(missing, m) { // two families may need the same compiler
				missing = append(missing, m)
			}
		}
	}
	for _, key := range only {
		if !slices.Contains(known, key) {
			return nil, nil, usagef("there is no side %q; there are %s", key, strings.Join(known, ", "))
		}
	}
	return sides, missing, nil
}

// family is a set of sides that use the same programs, which are therefore searched for together.
type family struct {
	keys []string
	// find prepares the wanted sides, and describes the missing ones.
	find func(ctx context.Context, dir string, wanted func(key string) bool) (found []side, missing []string, err error)
}

// UsageError reports that options are invalid.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
