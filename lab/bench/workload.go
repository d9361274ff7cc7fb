package bench

import (
	"fmt"
	"slices"
	"strings"
)

// workload describes a benchmark. It is implemented both in C and in Go.
type workload struct {
	name, title string
	// unit is the unit of a step's n, and axis the label for n on a plot. bytes means that n is a number of bytes.
	unit, axis string
	bytes      bool
	// fullSteps and quickSteps are the steps of a run. Quick steps are for tests.
	fullSteps, quickSteps []step
	// ranks returns the number of ranks in a step; nil means two.
	ranks func(step) int
	// messages returns the number of messages in a step. All of them are verified.
	messages func(step) int
	// source is the file name of the C program that runs the workload on an MPI library. args are its arguments before
	// the steps.
	source string
	args   []string
	// requiredFigures lists the figures that a measured point must include.
	requiredFigures []string
	// usesTags means that the messages have tags.
	usesTags bool
	// isCollective means that the workload measures a collective operation. inProcess means that the workload is not
	// run on ranks attached to a daemon.
	isCollective, inProcess bool
	// methods means that zrlmpid runs the workload with several broadcast methods in turn. The report treats each
	// method as a separate side.
	methods bool
	// weight is the approximate duration in seconds of a full round of a side, for estimates of the remaining time.
	weight float64
	// run runs a step on one rank and returns a point for each method. Only the points of rank 0 count.
	run func(*session, step) ([]Point, error)
}

// Numbers of messages in a window.
const (
	rateWindow   = 64
	streamWindow = 4
)

// timeFigures lists the figures that workloads report if they time single messages.
var timeFigures = []string{"p50", "p99", "p999", "least", "cpu"}

// workloads lists all workloads in the order in which they run.
var workloads = slices.Concat([]*workload{
	{
		name: "pingpong", title: "Ping-pong", unit: "message", axis: "message length", bytes: true,
		source: "pingpong.c", requiredFigures: timeFigures, weight: 1.5,
		fullSteps: []step{
			{4, 20000}, {16, 3000}, {64, 3000}, {256, 3000}, {1024, 3000},
			{1384, 3000}, {1388, 3000}, // 346 words fit into one datagram of cloudfpga, 347 need two
			{4096, 3000}, {16384, 1000}, {65536, 500}, {262144, 200}, {1 << 20, 100},
			{4_000_000, 50}, // 1,000,000 words
		},
		quickSteps: []step{{4, 50}, {1388, 20}, {65536, 4}},
		messages:   func(s step) int { return 2 * (warmup + s.iterations) },
		run:        withoutMethods(pingPong),
	},
	{
		name: "rate", title: "Message rate", unit: "message", axis: "message length", bytes: true, source: "window.c",
		args: []string{"64", "bytes"}, requiredFigures: timeFigures, weight: 1,
		fullSteps:  []step{{4, 300}, {64, 300}, {256, 300}, {1024, 300}, {4096, 200}},
		quickSteps: []step{{4, 3}, {4096, 2}},
		messages:   windowMessages(rateWindow),
		run:        withoutMethods(func(s *session, st step) (Point, error) { return windowStep(s, st, rateWindow) }),
	},
	{
		name: "stream", title: "Stream", unit: "message", axis: "message length", bytes: true, source: "window.c",
		args: []string{"4", "bytes"}, requiredFigures: timeFigures, weight: 1.5,
		fullSteps:  []step{{4096, 500}, {16384, 300}, {65536, 200}, {262144, 100}, {1 << 20, 30}, {4_000_000, 15}},
		quickSteps: []step{{4096, 4}, {262144, 2}},
		messages:   windowMessages(streamWindow),
		run:        withoutMethods(func(s *session, st step) (Point, error) { return windowStep(s, st, streamWindow) }),
	},
	{
		name: "multipair", title: "Several pairs at once", unit: "pairs", axis: "pairs of ranks", source: "window.c",
		args: []string{"64", "pairs"}, requiredFigures: []string{"p50", "cpu"}, weight: 1.5,
		fullSteps: []step{{1, 200}, {2, 200}, {4, 100}}, quickSteps: []step{{2, 3}},
		ranks:    func(s step) int { return 2 * s.n },
		messages: func(s step) int { return s.n * windowMessages(rateWindow)(s) },
		run:      withoutMethods(pairsStep),
	},
	{
		name: "ring", title: "Ring", unit: "ranks", axis: "ranks", source: "ring.c", requiredFigures: timeFigures,
		weight:    1.5,
		fullSteps: []step{{2, 5000}, {4, 3000}, {8, 2000}, {16, 1000}}, quickSteps: []step{{2, 20}, {4, 5}},
		ranks:    func(s step) int { return s.n },
		messages: func(s step) int { return s.n * (warmup + s.iterations) },
		run:      withoutMethods(ringStep),
	},
	{
		name: "queues", title: "Posted receives", unit: "posted", axis: "posted receives", source: "queues.c",
		requiredFigures: timeFigures, usesTags: true, weight: 10,
		fullSteps: []step{
			{0, 1000}, {1, 1000}, {10, 1000}, {100, 1000}, {256, 1000},
			{1000, 1000}, {4000, 1000}, {10000, 300}, {30000, 300},
		},
		quickSteps: []step{{0, 20}, {10, 20}, {300, 20}},
		messages:   func(s step) int { return 2*(warmup+s.iterations) + s.n },
		run:        withoutMethods(queuesStep),
	},
}, collectiveWorkloads(), []*workload{
	{
		name: "idle", title: "Idle ranks", unit: "ms", source: "idle.c", requiredFigures: nil, weight: 4,
		fullSteps: []step{{3000, 1}}, quickSteps: []step{{200, 1}},
		messages: func(step) int { return 1 },
		run:      withoutMethods(idleStep),
	},
})

// windowMessages returns a function that counts the messages of a step in which windows of the given size are sent.
// Answers are included.
func windowMessages(size int) func(step) int {
	return func(s step) int { return (warmupWindows+s.iterations)*(size+1) + 1 }
}

// Workloads returns the names of all workloads.
func Workloads() []string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = w.name
	}
	return names
}

func workloadNamed(name string) (*workload, error) {
	i := slices.IndexFunc(workloads, func(w *workload) bool { return w.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no workload %q; there are %s", name, strings.Join(Workloads(), ", "))
	}
	return workloads[i], nil
}

// numRanks returns the number of ranks in a step.
func (w *workload) numRanks(s step) int {
	if w.ranks == nil {
		return 2
	}
	return w.ranks(s)
}

// total returns the number of messages in all steps.
func (w *workload) total(steps []step) int {
	n := 0
	for _, s := range steps {
		n += w.messages(s)
	}
	return n
}

// perRound returns the number of messages in a round of step n.
func (w *workload) perRound(n int) int {
	return w.messages(step{n, warmup + 1}) - w.messages(step{n, warmup}) // the warm-up cancels out
}

// label formats the n of a step.
func (w *workload) label(n int) string {
	if w.bytes {
		return formatSize(n)
	}
	return formatCount(n)
}
