package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// side is one of those that are compared: zrlmpid or a peer, in one way.
type side struct {
	// Key names it to programs, and Name to people.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Peer: it is not zrlmpid.
	Peer    bool   `json:"peer"`
	Version string `json:"version,omitempty"`
	Command string `json:"command"`

	// run runs both ranks, and returns what rank 0 printed.
	run func(ctx context.Context, steps []step) ([]byte, error)
}

// options are the flags of a measurement.
type options struct {
	rounds     int
	quick      bool
	only       string
	steps      string
	timeout    time.Duration
	cpuProfile string
	output
}

func (o *options) flags(f *flag.FlagSet) {
	f.IntVar(&o.rounds, "rounds", 3, "how often all sides are measured, in turn")
	f.BoolVar(&o.quick, "quick", false, "a few small steps, to see that everything works")
	f.StringVar(&o.only, "only", "", "measure these sides only: `keys`, with commas between")
	f.StringVar(&o.steps, "steps", "", "measure these steps instead: `N:ITERATIONS`, with commas between")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long a side may take for a round")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of each of zrlmpid's ranks, in the last round, to `prefix`.SIDE.RANK.pprof")
	o.output.flags(f)
}

// measure runs a workload on all sides and reports.
func measure(ctx context.Context, w *workload, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet(w.name, flag.ContinueOnError)
	var o options
	o.flags(f)
	if err := parse(f, args, stderr, 0); err != nil {
		return err
	}
	if o.rounds < 1 {
		return fmt.Errorf("-rounds %d: there is at least 1", o.rounds)
	}
	steps, err := o.choose(w)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "zrlmpid-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &report{Workload: w.name, Unit: w.unit, Rounds: o.rounds, Machine: describeMachine(ctx)}
	if err := r.findSides(ctx, w, &o, dir, stderr); err != nil {
		return err
	}
	if err := r.measure(ctx, w, steps, &o, stderr); err != nil {
		return err
	}
	return o.write(r, stdout)
}

// choose returns the steps.
func (o *options) choose(w *workload) ([]step, error) {
	switch {
	case o.steps != "":
		return parseSteps(o.steps)
	case o.quick:
		return w.quick, nil
	}
	return w.full, nil
}

// findSides prepares whoever is to be measured and is there.
func (r *report) findSides(ctx context.Context, w *workload, o *options, dir string, stderr io.Writer) error {
	known := map[string]bool{}
	wanted := func(key string) bool {
		known[key] = true
		return o.only == "" || slices.Contains(strings.Split(o.only, ","), key)
	}
	for _, l := range w.links {
		if !wanted(l.key) {
			continue
		}
		s, err := l.side(w, dir, o.cpuProfile)
		if err != nil {
			return err
		}
		s.Version = r.Machine.Revision
		r.Sides = append(r.Sides, measured{side: s})
	}
	for i := range libraries {
		l := &libraries[i]
		ways := slices.ContainsFunc(l.ways, func(x way) bool { return wanted(x.key) })
		for _, x := range l.ways {
			known[x.key] = true
		}
		if !ways {
			continue
		}
		if m := l.missing(); m != "" {
			r.Missing = append(r.Missing, m)
			fmt.Fprintf(stderr, "\n*** %s ***\n\n", m)
			continue
		}
		sides, err := l.sides(ctx, w, dir)
		if err != nil {
			return err
		}
		for _, s := range sides {
			if wanted(s.Key) {
				r.Sides = append(r.Sides, measured{side: s})
			}
		}
	}
	return checkOnly(o.only, known)
}

// checkOnly refuses names of no side.
func checkOnly(only string, known map[string]bool) error {
	if only == "" {
		return nil
	}
	for key := range strings.SplitSeq(only, ",") {
		if !known[key] {
			var keys []string
			for k := range known {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			return fmt.Errorf("-only %s: there is no side %q; there are %s", only, key, strings.Join(keys, ", "))
		}
	}
	return nil
}

// measure runs the rounds. All sides are measured in each of them, so that what
// else the machine does falls on all alike.
func (r *report) measure(ctx context.Context, w *workload, steps []step, o *options, stderr io.Writer) error {
	for round := range o.rounds {
		for i := range r.Sides {
			s := &r.Sides[i]
			start := time.Now()
			limited, cancel := context.WithTimeout(ctx, o.timeout)
			out, err := s.run(limited, steps)
			if limited.Err() != nil && ctx.Err() == nil {
				err = fmt.Errorf("it took more than %v: give it more by -timeout", o.timeout)
			}
			cancel()
			var points []point
			if err == nil {
				points, err = parseOutput(out, w, steps)
			}
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", s.Name, round+1, err)
			}
			s.Rounds = append(s.Rounds, points)
			s.Verified += w.total(steps)
			fmt.Fprintf(stderr, "round %d of %d: %s: %.1f s\n", round+1, o.rounds, s.Name, time.Since(start).Seconds())
		}
	}
	r.finish()
	return nil
}
