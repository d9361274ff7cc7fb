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

// A measurement of a cell takes about budget, by so many calls.
const (
	budget        = 20 * time.Millisecond
	quickBudget   = time.Millisecond
	minIterations = 3
	maxIterations = 500
)

// jobTime is how long ranks may take for one job: calls that wait for each other forever
// end then.
const jobTime = time.Minute

// Report is what a measurement came to.
type Report struct {
	// Table is what was measured.
	Table *collectives.Table
	// Failed says what could not be measured.
	Failed []string
	// Cut: the deadline expired, so there are fewer rounds than were requested.
	Cut bool
}

// Err says what has failed, or is nil.
func (r *Report) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	return errors.New("failed: " + strings.Join(r.Failed, "\nfailed: "))
}

// ErrLimit is the error of a measurement for whose first round the time was too short.
var ErrLimit = errors.New("the deadline expired before everything was measured once: increase --limit, or measure less")

// measurer is a cluster, or what a test puts in its place.
type measurer interface {
	measure(context.Context, job) ([]int64, error)
	close()
}

// tuner is a run.
type tuner struct {
	Options
	out    io.Writer
	launch func(ctx context.Context, transport string, ranks int) (measurer, error)
	groups []*group
	links  map[string]collectives.Link
	clock  clock
	report Report
}

// Run measures, and reports its progress. A measurement that fails is not repeated;
// the report says so, and its Err is not nil. The other errors are a *UsageError,
// ErrLimit, what keeps anything from being measured, or ctx's.
func Run(ctx context.Context, o Options, progress io.Writer) (*Report, error) {
	t := &tuner{Options: o, out: &shared{Writer: progress}, links: map[string]collectives.Link{}}
	collectives, err := t.complete()
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

// run is Run for options that are complete. When limited ends, the time has run out.
func (t *tuner) run(ctx, limited context.Context, collectives []coll.Collective) (*Report, error) {
	machine := bench.DescribeMachine()
	for _, transport := range t.Transports {
		link, err := t.measureLink(limited, transport)
		if err != nil {
			return nil, over(ctx, limited, fmt.Errorf("%s: %w", transport, err))
		}
		t.links[transport] = link
		for _, n := range t.Ranks {
			g := &group{transport: transport, ranks: n}
			for _, of := range collectives {
				g.cells = append(g.cells, t.plan(of, n, transport, link)...)
			}
			t.groups = append(t.groups, g)
		}
	}
	t.begin()
	rounds := 0
	for ; rounds < t.Rounds && !t.report.Cut; rounds++ {
		for _, g := range t.groups {
			err := t.measureGroup(limited, g, rounds)
			switch {
			case err == nil:
				continue
			case limited.Err() == nil || ctx.Err() != nil || rounds == 0:
				return nil, over(ctx, limited, err)
			}
			t.report.Cut = true
			break
		}
	}
	if t.report.Cut {
		rounds--
		fmt.Fprintf(t.out, "*** the time of %v is over: the medians are of %d rounds ***\n", t.Limit, rounds)
	}
	return &t.report, t.decide(machine, rounds)
}

// over makes the error of a run that cannot go on.
func over(ctx, limited context.Context, err error) error {
	if ctx.Err() == nil && limited.Err() != nil {
		return ErrLimit
	}
	return err
}

// measureGroup measures the cells of a group once. The error is that nothing more can be
// done.
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
				m = nil // not a nil *cluster in it
				return err
			}
		}
		us, err := t.median(ctx, m, c)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.fail(g, c, err)
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

// fail notes that a cell cannot be measured.
func (t *tuner) fail(g *group, c *cell, err error) {
	c.failed = true
	text := fmt.Sprintf("%s, %d ranks: %v: %v", g.transport, g.ranks, c, err)
	t.report.Failed = append(t.report.Failed, text)
	fmt.Fprintf(t.out, "\n*** FAILED: %s ***\n\n", text)
}

// median measures a cell, in microseconds. How often the call is made is determined
// when it is measured for the first time.
func (t *tuner) median(ctx context.Context, m measurer, c *cell) (float64, error) {
	if c.iterations == 0 {
		us, err := t.calls(ctx, m, c, 1)
		if err != nil {
			return 0, err
		}
		time := budget
		if t.Quick {
			time = quickBudget
		}
		c.iterations = int(min(max(float64(time.Microseconds())/max(us, 0.1), minIterations), maxIterations))
	}
	return t.calls(ctx, m, c, c.iterations)
}

// calls gives the median of so many calls.
func (t *tuner) calls(ctx context.Context, m measurer, c *cell, n int) (float64, error) {
	limited, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	j := job{Collective: choice.Name(c.of), By: choice.Choice{Algorithm: c.by.Algorithm, Segment: c.segment}, Bytes: c.bytes, Iterations: n}
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

// median is that of the values, whose order it changes.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}
