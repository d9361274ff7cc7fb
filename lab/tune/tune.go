package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Limits for the measurement of a call: its approximate duration, and the number of repetitions.
const (
	budget        = 20 * time.Millisecond
	quickBudget   = time.Millisecond
	minIterations = 3
	maxIterations = 500
)

// jobTime limits the duration of a job, so that a deadlocked call does not block the measurement.
const jobTime = time.Minute

// Report is the result of a run.
type Report struct {
	// Table is the resulting table, including the measurements on which it is based.
	Table *collectives.Table
	// Failed lists the measurements that failed.
	Failed []string
	// TimedOut reports whether time ran out before all requested rounds were complete.
	TimedOut bool
}

// Err returns an error that lists the failed measurements, or nil.
func (r *Report) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	return errors.New("failed: " + strings.Join(r.Failed, "\nfailed: "))
}

// ErrLimit is returned when the time limit expired before the first round was complete.
var ErrLimit = errors.New("the deadline expired before everything was measured once: increase --limit, or measure less")

// measurer executes jobs. It is implemented by a cluster, and by a substitute in tests.
type measurer interface {
	measure(context.Context, job) ([]int64, error)
	close()
}

// tuner holds the state of a run.
type tuner struct {
	Options
	out    io.Writer
	launch func(ctx context.Context, transport string, ranks int) (measurer, error)
	groups []*group
	links  map[string]collectives.Link
	clock  progressCounter
	report Report
}

// Run runs the measurements, and writes its progress to progress. If a measurement fails, Run does not repeat it, but
// lists it in the report, whose Err then returns an error. Run itself returns an error only if the options are invalid
// (a *UsageError), if time runs out (ErrLimit), if nothing can be measured, or if ctx is done.
func Run(ctx context.Context, o Options, progress io.Writer) (*Report, error) {
	t := &tuner{Options: o, out: &lockedWriter{Writer: progress}, links: map[string]collectives.Link{}}
	collectives, err := t.setDefaults()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "zrlmpid-tune-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t.launch = func(ctx context.Context, transport string, ranks int) (measurer, error) {
		return startCluster(ctx, dir, transport, ranks, t.out)
	}
	limited, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	return t.run(ctx, limited, collectives)
}

// run is the body of Run, called with complete options. limited is done when the time limit expires.
func (t *tuner) run(ctx, limited context.Context, collectives []coll.Collective) (*Report, error) {
	machine := bench.DescribeMachine()
	for _, transport := range t.Transports {
		link, err := t.measureLink(limited, transport)
		if err != nil {
			return nil, limitError(ctx, limited, fmt.Errorf("%s: %w", transport, err))
		}
		t.links[transport] = link
		for _, n := range t.Ranks {
			g := &group{transport: transport, ranks: n}
			for _, of := range collectives {
				g.cells = append(g.cells, t.planCells(of, n, transport, link)...)
			}
			t.groups = append(t.groups, g)
		}
	}
	t.startProgress()
	rounds := 0
	for ; rounds < t.Rounds && !t.report.TimedOut; rounds++ {
		for _, g := range t.groups {
			err := t.measureGroup(limited, g, rounds)
			switch {
			case err == nil:
				continue
			case limited.Err() == nil || ctx.Err() != nil || rounds == 0:
				return nil, limitError(ctx, limited, err)
			}
			t.report.TimedOut = true
			break
		}
	}
	if t.report.TimedOut {
		rounds--
		fmt.Fprintf(t.out, "*** the time of %v is over: the medians are of %d rounds ***\n", t.Limit, rounds)
	}
	return &t.report, t.makeTable(machine, rounds)
}

// limitError returns the error for a run that cannot continue.
func limitError(ctx, limited context.Context, err error) error {
	if ctx.Err() == nil && limited.Err() != nil {
		return ErrLimit
	}
	return err
}

// measureGroup measures each cell of a group once. It returns an error only if no further measurement is possible.
func (t *tuner) measureGroup(ctx context.Context, g *group, round int) error {
	t.reportProgress(g, round)
	start := time.Now()
	var m measurer
	defer func() {
		if m != nil {
			m.close()
		}
	}()
	for _, c := range g.cells {
		if c.failed {
			continue
		}
		if m == nil {
			var err error
			if m, err = t.launch(ctx, g.transport, g.ranks); err != nil {
				m = nil // avoid a non-nil interface with a nil *cluster
				return err
			}
		}
		us, err := t.measureCell(ctx, m, c)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.recordFailure(g, c, err)
			m.close()
			m = nil
			continue
		}
		c.micros = append(c.micros, us)
	}
	g.took = time.Since(start)
	fmt.Fprintf(t.out, "    %.1f s\n", g.took.Seconds())
	return nil
}

// recordFailure records that the measurement of a cell failed.
func (t *tuner) recordFailure(g *group, c *cell, err error) {
	c.failed = true
	text := fmt.Sprintf("%s, %d ranks: %v: %v", g.transport, g.ranks, c, err)
	t.report.Failed = append(t.report.Failed, text)
	fmt.Fprintf(t.out, "\n*** FAILED: %s ***\n\n", text)
}

// measureCell measures a cell and returns the median time in microseconds. The first time, it also determines the
// number of iterations.
func (t *tuner) measureCell(ctx context.Context, m measurer, c *cell) (float64, error) {
	if c.iterations == 0 {
		us, err := t.measureCalls(ctx, m, c, 1)
		if err != nil {
			return 0, err
		}
		time := budget
		if t.Quick {
			time = quickBudget
		}
		c.iterations = int(min(max(float64(time.Microseconds())/max(us, 0.1), minIterations), maxIterations))
	}
	return t.measureCalls(ctx, m, c, c.iterations)
}

// measureCalls returns the median duration of n calls, in microseconds.
func (t *tuner) measureCalls(ctx context.Context, m measurer, c *cell, n int) (float64, error) {
	limited, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	j := job{Collective: choice.CollectiveName(c.collective),
		By:    choice.Choice{Algorithm: c.by.Algorithm, Segment: c.segment},
		Bytes: c.bytes, Iterations: n}
	nanos, err := m.measure(limited, j)
	if limited.Err() != nil && ctx.Err() == nil {
		return 0, fmt.Errorf("it takes more than %v", jobTime)
	}
	if err != nil {
		return 0, err
	}
	micros := make([]float64, len(nanos))
	for i, ns := range nanos {
		micros[i] = float64(ns) / 1000
	}
	return median(micros), nil
}

// median sorts values and returns their median.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}
