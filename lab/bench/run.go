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

// Options select the measurements.
type Options struct {
	// Workloads lists the names of workloads. The default is all.
	Workloads []string
	// Rounds is the number of rounds, each of which measures all sides in turn. 0 means 3, or 1 if Quick is set.
	Rounds int
	// Quick runs only a few small steps, to check that everything works.
	Quick bool
	// Only lists the keys of the sides to measure. The default is all.
	Only []string
	// Steps replaces the steps of a single workload. It is a comma-separated list of N:ITERATIONS.
	Steps string
	// Disturb measures everything twice in each round. The second time, a neighbour uses a fifth of each processor, in
	// bursts of 1 to 20 ms.
	Disturb bool
	// Timeout limits how long a side may take for a workload in a round. 0 means five minutes, or 30 seconds if Quick
	// is set.
	Timeout time.Duration
	// CPUProfile is a prefix for the names of CPU profiles. Ranks of zrlmpid write them in the last round, to
	// PREFIX.WORKLOAD.SIDE.RANK.pprof. If it is empty, no profiles are written.
	CPUProfile string
}

// Default values of Options.
const (
	defaultRounds  = 3
	defaultTimeout = 5 * time.Minute
	quickTimeout   = 30 * time.Second
)

// task combines a workload with the steps of it that are to be run.
type task struct {
	*workload
	steps []step
}

// planTasks checks the options and sets defaults. It returns the tasks to run. Errors are of type *UsageError.
func (o *Options) planTasks() ([]task, error) {
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
		t := task{w, w.fullSteps}
		if o.Quick {
			t.steps = w.quickSteps
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

// Run runs the measurements, and writes its progress to progress. Each round measures all sides, so that other load on
// the machine affects all of them alike. Run makes measurements again if cache lines were slow during them. If a side
// fails, Run omits the side from then on and lists it in the report, whose Err then returns an error. Run itself
// returns an error only if the options are invalid (a *UsageError), if nothing can be measured, or if ctx is done.
func Run(ctx context.Context, options Options, progress io.Writer) (*Report, error) {
	tasks, err := options.planTasks()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "zrlmpid-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sides, missing, err := findSides(ctx, dir, options.Only)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: options, dir: dir, sides: sides, out: progress,
		report: &Report{Machine: DescribeMachine(), Rounds: options.Rounds}, moveLine: measureLine}
	if err := r.report.Machine.measure(); err != nil {
		missing = append(missing, err.Error())
	}
	for _, m := range missing {
		r.reportMissing(m)
	}
	r.prepare(tasks)
	if len(r.measurements) == 0 {
		return nil, usagef("none of the sides does any of the workloads")
	}
	if err := r.measureAll(ctx); err != nil {
		return nil, err
	}
	r.report.Machine.LoadAfter = loadAverage()
	r.report.computeDerived()
	return r.report, nil
}

// runner holds the state of a run.
type runner struct {
	Options
	dir          string
	sides        []side
	out          io.Writer
	report       *Report
	measurements []*measurement
	clock        progressCounter
	// moveLine measures the time, in ns, that a cache line takes to move between processors. It returns 0 if the time
	// is unknown. lines records all its results.
	moveLine func() (float64, error)
	lines    []float64
}

// measurement describes how one side is measured in one workload. It runs once per round.
type measurement struct {
	w      *workload
	side   *side
	parts  []part
	steps  []step
	budget time.Duration
	// disturbed means that a neighbour runs during the measurement.
	disturbed bool
	// resultIndex and sideIndex locate the first part of the measurement in the report: the index of its result, and
	// the index of its side in that result. The other parts follow it.
	resultIndex, sideIndex int
	failed                 bool
	// took is the duration of the last measurement, or 0 before the first one.
	took time.Duration
	// attempts lists all attempts, and cut the steps that were removed from them.
	attempts []*attempt
	cut      []CutStep
}

// attempt is one Attempt at a measurement, together with the points of all parts.
type attempt struct {
	Attempt
	points [][]Point
}

// scheduled is a measurement that is planned for a round. It includes the latest attempt, or nil before the first one.
type scheduled struct {
	*measurement
	round int
	last  *attempt
}

// prepare adds a measurement for each side and each workload that it supports.
func (r *runner) prepare(tasks []task) {
	for _, t := range tasks {
		result := Result{Workload: t.name, Unit: t.unit}
		for i := range r.sides {
			s := &r.sides[i]
			steps, parts := slices.Clone(s.supportedSteps(t.workload, t.steps)), s.partsFor(t.workload)
			if len(steps) == 0 || len(parts) == 0 {
				continue
			}
			m := measurement{
				w: t.workload, side: s, parts: parts, steps: steps, budget: r.stepBudget(t.workload, s.Kind),
				resultIndex: len(r.report.Results), sideIndex: len(result.Sides),
			}
			r.measurements = append(r.measurements, &m)
			if r.Disturb && len(t.requiredFigures) > 0 {
				again := m
				again.steps, again.disturbed = slices.Clone(steps), true
				r.measurements = append(r.measurements, &again)
			}
			for _, p := range parts {
				result.Sides = append(result.Sides, Measured{Side: p.Side})
			}
		}
		r.report.Results = append(r.report.Results, result)
	}
}

// measureAll runs all measurements in all rounds, and adds them to the report. After the last round, it makes
// measurements with a slow cache line again: by then the minimum is known, and the slow phase may be over.
func (r *runner) measureAll(ctx context.Context) error {
	var todo []scheduled
	for round := range r.Rounds {
		for _, m := range r.measurements {
			todo = append(todo, scheduled{measurement: m, round: round})
		}
	}
	again := maxRepeats
	if r.Quick { // figures of a quick run do not count
		again = 0
	}
	r.clock.all = len(todo)
	for ; len(todo) > 0; again-- {
		for i := range todo {
			if todo[i].failed {
				continue
			}
			r.reportProgress(todo[i:])
			if err := r.measure(ctx, &todo[i]); err != nil {
				return err
			}
		}
		if again == 0 {
			break
		}
		least := r.report.Machine.LineLeast
		if todo = discardSlow(todo, least); len(todo) > 0 {
			fmt.Fprintf(r.out, "measured again, since a cache line took over %v times its least, %s ns: %d of %d\n",
				slowLineFactor, formatFigure(least), len(todo), r.clock.all)
			r.clock.all += len(todo)
		}
	}
	for _, m := range r.measurements {
		r.collect(m)
	}
	return nil
}

// measure runs a measurement once. It returns an error only if no further measurement is possible.
func (r *runner) measure(ctx context.Context, t *scheduled) error {
	m, round := t.measurement, t.round
	j := job{w: m.w, parts: m.parts, budget: m.budget, dir: r.dir}
	if len(m.w.requiredFigures) > 0 { // ranks that only idle need no warm-up
		if j.warm = warmTime; r.Quick {
			j.warm = quickWarmTime
		}
	}
	if round == r.Rounds-1 {
		j.profile = r.CPUProfile
	}
	before := r.lineTime()
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	o, err := r.runMeasurement(limited, m, j, round)
	optional := m.side.optional
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%v: %w", m, ctx.Err())
	case limited.Err() != nil:
		// Libraries that poll become slow when other processes run, so a step that takes too long is not a failure of
		// this program.
		optional = optional || m.side.Kind == Peer
		err = fmt.Errorf("it took more than %v: raise --timeout", r.Timeout)
	}
	m.took = time.Since(start)
	fmt.Fprintf(r.out, "    %.1f s\n", m.took.Seconds())
	if err != nil {
		m.failed, m.attempts, m.cut = true, nil, nil
		text := fmt.Sprintf("%v: %s", m, strings.TrimSpace(err.Error()))
		if optional {
			r.reportMissing(text)
			return nil
		}
		r.report.Failed = append(r.report.Failed, text)
		fmt.Fprintf(r.out, "\n*** FAILED: %s ***\n\n", text)
		return nil
	}
	for _, note := range o.notes {
		if text := fmt.Sprintf("%v: %s", m, note); !slices.Contains(r.report.Missing, text) {
			r.reportMissing(text)
		}
	}
	r.applyCuts(m, o)
	t.last = &attempt{Attempt{Round: round + 1, LineBefore: before, LineAfter: r.lineTime()}, o.points}
	m.attempts = append(m.attempts, t.last)
	results := r.results(m)
	for i := range results {
		result := &results[i]
		result.Verified += o.verified / len(results) // each part has the same number
		result.Memory = max(result.Memory, o.memory)
	}
	return nil
}

// results returns the report's entries in which the parts of a measurement are recorded.
func (r *runner) results(m *measurement) []Measured {
	return r.report.Results[m.resultIndex].Sides[m.sideIndex:][:len(m.parts)]
}

// collect adds the attempts of a measurement to the report, ordered by round.
func (r *runner) collect(m *measurement) {
	slices.SortStableFunc(m.attempts, func(a, b *attempt) int { return a.Round - b.Round })
	results := r.results(m)
	for i := range results {
		f := m.figures(&results[i])
		for _, a := range m.attempts {
			f.addAttempt(a.Attempt, a.points[i])
		}
		for _, c := range m.cut {
			f.removeStep(c)
		}
	}
}

// runMeasurement runs a measurement, together with a neighbour if it is to be disturbed.
func (r *runner) runMeasurement(ctx context.Context, m *measurement, j job, round int) (o outcome, ended error) {
	if m.disturbed {
		self, err := os.Executable()
		if err != nil {
			return outcome{}, err
		}
		stop, err := startNeighbour(ctx, self, round)
		if err != nil {
			return outcome{}, fmt.Errorf("the neighbour: %w", err)
		}
		defer func() { ended = errors.Join(ended, stop()) }()
	}
	return m.side.measure(ctx, j, m.steps)
}

// figures returns the Figures in the report to which a measurement adds its points.
func (m *measurement) figures(of *Measured) *Figures {
	if !m.disturbed {
		return &of.Figures
	}
	if of.Disturbed == nil {
		of.Disturbed = new(Figures)
	}
	return of.Disturbed
}

// String returns a name such as "pingpong, extended-udp" or "pingpong, extended-udp, disturbed".
func (m *measurement) String() string {
	text := m.w.name + ", " + m.side.Key
	if m.disturbed {
		text += ", disturbed"
	}
	return text
}

// applyCuts removes steps that were cut in one round from all rounds, so that all rounds have the same steps. Steps
// that were reduced keep their lower number of iterations in later rounds.
func (r *runner) applyCuts(m *measurement, o outcome) {
	for _, s := range o.reduced {
		i := slices.IndexFunc(m.steps, func(other step) bool { return other.n == s.n })
		r.reportMissing(fmt.Sprintf("%v: %s: %d instead of %d iterations, to end in %v", m, m.w.label(s.n), s.iterations,
			m.steps[i].iterations, m.budget))
		m.steps[i].iterations = s.iterations
	}
	for _, c := range o.cut {
		fmt.Fprintf(r.out, "    %s: %v\n", m.w.label(c.N), &c)
		m.steps = slices.DeleteFunc(m.steps, func(s step) bool { return s.n == c.N })
	}
	m.cut = append(m.cut, o.cut...)
	m.failed = len(m.steps) == 0
}

// reportMissing adds a remark to the report's list of missing measurements.
func (r *runner) reportMissing(text string) {
	r.report.Missing = append(r.report.Missing, text)
	fmt.Fprintf(r.out, "\n*** %s ***\n\n", text)
}

// Err returns an error that lists the sides that failed, or nil.
func (r *Report) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	return errors.New("failed: " + strings.Join(r.Failed, "\nfailed: "))
}
