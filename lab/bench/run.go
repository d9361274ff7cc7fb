package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Options say what to measure.
type Options struct {
	// Workloads are names; none is all.
	Workloads []string
	// Rounds is how often all sides are measured, in turn; 0 is 3, or 1 if Quick.
	Rounds int
	// Quick makes a few small steps, to see that everything works.
	Quick bool
	// Only are the keys of the sides to measure; none is all.
	Only []string
	// Steps are those of the one workload instead of its own: N:ITERATIONS,
	// with commas between.
	Steps string
	// Timeout is how long a side may take for a workload in a round; 0 is five
	// minutes, or 30 seconds if Quick.
	Timeout time.Duration
	// CPUProfile is the beginning of the names of CPU profiles of zrlmpid's
	// ranks in the last round, PREFIX.WORKLOAD.SIDE.RANK.pprof; "" writes none.
	CPUProfile string
}

// The defaults of Options.
const (
	defaultRounds  = 3
	defaultTimeout = 5 * time.Minute
	quickTimeout   = 30 * time.Second
)

// task is a workload with the steps to do.
type task struct {
	*workload
	steps []step
}

// plan reads the options. Errors are *UsageError.
func (o *Options) plan() ([]task, error) {
	switch {
	case o.Rounds < 0:
		return nil, usagef("%d rounds: there is at least 1", o.Rounds)
	case o.Rounds == 0 && o.Quick:
		o.Rounds = 1
	case o.Rounds == 0:
		o.Rounds = defaultRounds
	}
	switch {
	case o.Timeout > 0:
	case o.Quick:
		o.Timeout = quickTimeout
	default:
		o.Timeout = defaultTimeout
	}
	names := o.Workloads
	if len(names) == 0 {
		names = Workloads()
	}
	if o.Steps != "" && len(names) != 1 {
		return nil, usagef("steps are of one workload: name it")
	}
	var tasks []task
	for i, name := range names {
		w, err := workloadNamed(name)
		if err != nil {
			return nil, usagef("%v", err)
		}
		if slices.Contains(names[:i], name) {
			return nil, usagef("%s is named twice", name)
		}
		t := task{w, w.full}
		if o.Quick {
			t.steps = w.quick
		}
		if o.Steps != "" {
			if t.steps, err = parseSteps(o.Steps); err != nil {
				return nil, usagef("%v", err)
			}
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// Run measures, and reports its progress. All sides are measured in each
// round, so that what else the machine does falls on all alike. A side that fails
// is left out from then on; the report says so, and its Err is not nil. The other
// errors are a *UsageError, what keeps anything from being measured, or ctx's.
func Run(ctx context.Context, o Options, progress io.Writer) (*Report, error) {
	tasks, err := o.plan()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "zrlmpid-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sides, missing, err := findSides(ctx, dir, o.Only)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o, dir: dir, sides: sides, out: progress, report: &Report{Machine: DescribeMachine(), Rounds: o.Rounds}}
	for _, m := range missing {
		r.miss(m)
	}
	r.prepare(tasks)
	if len(r.measurements) == 0 {
		return nil, usagef("none of the sides does any of the workloads")
	}
	r.begin()
	for round := range o.Rounds {
		for _, m := range r.measurements {
			if err := r.measure(ctx, m, round); err != nil {
				return nil, err
			}
		}
	}
	r.report.Machine.LoadAfter = loadAverage()
	r.report.finish()
	return r.report, nil
}

// runner is a run.
type runner struct {
	Options
	dir          string
	sides        []side
	out          io.Writer
	report       *Report
	measurements []*measurement
	clock        clock
}

// measurement is what a side does in a workload.
type measurement struct {
	w     *workload
	side  *side
	parts []part
	steps []step
	// workload and at are where its figures go, those of the first part; the others
	// follow.
	workload, at int
	failed       bool
	// took is how long it took last; 0 is unknown.
	took time.Duration
}

// prepare makes a measurement of each side that can do a workload.
func (r *runner) prepare(tasks []task) {
	for _, t := range tasks {
		result := Result{Workload: t.name, Unit: t.unit}
		for i := range r.sides {
			s := &r.sides[i]
			steps, parts := s.does(t.workload, t.steps), s.in(t.workload)
			if len(steps) == 0 || len(parts) == 0 {
				continue
			}
			r.measurements = append(r.measurements, &measurement{
				w: t.workload, side: s, parts: parts, steps: steps, workload: len(r.report.Results), at: len(result.Sides),
			})
			for _, p := range parts {
				result.Sides = append(result.Sides, Measured{Side: p.Side})
			}
		}
		r.report.Results = append(r.report.Results, result)
	}
}

// measure does a measurement once. The error is that nothing more can be done.
func (r *runner) measure(ctx context.Context, m *measurement, round int) error {
	if m.failed {
		return nil
	}
	r.reportProgress(m, round)
	j := job{w: m.w, parts: m.parts, dir: r.dir}
	if round == r.Rounds-1 {
		j.profile = r.CPUProfile
	}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	o, err := m.side.measure(limited, j, m.steps)
	optional := m.side.optional
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s, %s: %w", m.w.name, m.side.Key, ctx.Err())
	case limited.Err() != nil:
		// Those that poll are slow where others have work, and it is no fault
		// of ours.
		optional = optional || m.side.Kind == Peer
		err = fmt.Errorf("it took more than %v: raise --timeout", r.Timeout)
	}
	m.took = time.Since(start)
	fmt.Fprintf(r.out, "    %.1f s\n", m.took.Seconds())
	results := r.report.Results[m.workload].Sides[m.at:][:len(m.parts)]
	if err != nil {
		m.failed = true
		for i := range results {
			results[i].Rounds = nil
		}
		text := fmt.Sprintf("%s, %s: %s", m.w.name, m.side.Key, strings.TrimSpace(err.Error()))
		if optional {
			r.miss(text)
			return nil
		}
		r.report.Failed = append(r.report.Failed, text)
		fmt.Fprintf(r.out, "\n*** FAILED: %s ***\n\n", text)
		return nil
	}
	for i := range results {
		result := &results[i]
		result.Rounds = append(result.Rounds, o.points[i])
		result.Verified += o.verified / len(results) // all have the same
		result.Memory = max(result.Memory, o.memory)
	}
	return nil
}

// miss reports what is not measured.
func (r *runner) miss(text string) {
	r.report.Missing = append(r.report.Missing, text)
	fmt.Fprintf(r.out, "\n*** %s ***\n\n", text)
}

// Err says which sides have failed, or is nil.
func (r *Report) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	return errors.New("failed: " + strings.Join(r.Failed, "\nfailed: "))
}
