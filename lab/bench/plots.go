package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/zrlmpi/zrlmpid/lab/chart"
)

// The labels of an axis that state whether lower or higher values are better.
const lower, higher = "lower is better", "higher is better"

// picture describes a plot of a workload's sides.
type picture struct {
	workload, name, title, y, better string
	unit                             chart.Unit
	value                            func(Point) float64
	// figure is the name of the figure to which a line was fitted. The plot shows that line. If figure is empty, no
	// line is drawn.
	figure string
	// sides lists the keys of the sides to draw. By default, all sides are drawn.
	sides []string
	// bases lists the keys of reference sides, one for each group. All values in the plot are relative to the values of
	// these sides.
	bases []string
}

var pictures = []picture{
	{"pingpong", "latency", "Time of a message", "half round trip, p50", lower, chart.Microseconds, p50, "p50", nil,
		nil},
	{"pingpong", "bandwidth", "Ping-pong bandwidth", "bytes per second", higher, chart.BytesPerSecond, bandwidthOf, "",
		nil, nil},
	{"rate", "", "Message rate, 64 in flight", "messages per second", higher, chart.PerSecond,
		func(p Point) float64 { return 1e6 / p.P50 }, "", nil, nil},
	{"stream", "", "Bandwidth one way, 4 messages in flight", "bytes per second", higher, chart.BytesPerSecond,
		bandwidthOf, "", nil, nil},
	{"multipair", "", "Message rate of several pairs together", "messages per second", higher, chart.PerSecond,
		func(p Point) float64 { return 1e6 / p.P50 }, "", nil, nil},
	{"ring", "", "Time of a hop in a ring", "time of a hop, p50", lower, chart.Microseconds, p50, "p50", nil, nil},
	{"queues", "latency", "Latency against posted receives that do not match", "half round trip, p50", lower,
		chart.Microseconds, p50, "p50", nil, nil},
	{"queues", "unload", "Time to unload the posted receives, in reverse order", "time", lower, chart.Microseconds,
		unloadTime, "unload", nil, nil},
	{"bcast", "", "Time of a broadcast to 8 ranks", "time of a broadcast, p50", lower, chart.Microseconds, p50, "",
		bcastSides, nil},
	{"bcast", "ratio", "Time of a broadcast to 8 ranks as a multiple of Open MPI's", "multiple of Open MPI's time, p50",
		lower, chart.Multiple, p50, "", bcastSides, openMPI},
	{"bcast-busy", "", "Time of a broadcast to 8 ranks, one rank busy", "time of a broadcast, p50", lower,
		chart.Microseconds, p50, "", bcastSides, nil},
	{"bcast-busy", "ratio", "Time of a broadcast to 8 ranks, one rank busy, as a multiple of Open MPI's",
		"multiple of Open MPI's time, p50", lower, chart.Multiple, p50, "", bcastSides, openMPI},
}

var (
	openMPI = []string{openMPITCP, openMPIShm}
	// bcastSides are the keys of the broadcast methods over UDP and shared memory, and of the peers.
	bcastSides = slices.Concat([]string{extendedUDP.key, extendedShm.key, "mpich-tcp", mpichShm},
		extendedUDP.methodKeys(), extendedShm.methodKeys(), openMPI)
)

func p50(p Point) float64         { return p.P50 }
func bandwidthOf(p Point) float64 { return float64(p.N) / p.P50 * 1e6 }

// unloadTime returns the time to empty the queue. It returns 0, which is not drawn, if the queue was empty.
func unloadTime(p Point) float64 {
	if p.N == 0 {
		return 0
	}
	return p.Unload
}

// Draw writes plots into a folder. It writes a plot if wanted returns true for its name.
func (r *Report) Draw(folder string, wanted func(name string) bool) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for i := range r.Results {
		for _, d := range r.plots(&r.Results[i]) {
			if !wanted(d.name) {
				continue
			}
			image, err := d.chart.SVG()
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			if err := os.WriteFile(filepath.Join(folder, d.name+".svg"), image, 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawing is a plot with its file name.
type drawing struct {
	name  string
	chart *chart.Chart
}

// plots returns the plots of a workload. There is one for each group of sides.
func (r *Report) plots(res *Result) []drawing {
	var all []drawing
	for _, pic := range pictures {
		if pic.workload != res.Workload {
			continue
		}
		name := pic.workload
		if pic.name != "" {
			name += "-" + pic.name
		}
		for _, g := range groups {
			if p := r.chartOf(pic, res, g); len(p.Series) > 0 {
				all = append(all, drawing{name + "-" + string(g), p})
			}
		}
	}
	return all
}

// chartOf returns a chart of one value, with a line for each side in the group.
func (r *Report) chartOf(pic picture, res *Result, group Group) *chart.Chart {
	note := pic.better
	if r.Rounds > 1 {
		bars := ", bars: min–max"
		if r.isArchived() {
			bars = ""
		}
		note = fmt.Sprintf("median of %d rounds%s; %s", r.Rounds, bars, note)
	}
	w, err := workloadNamed(res.Workload)
	if err != nil {
		return &chart.Chart{}
	}
	axis := chart.Axis{Name: w.axis, Unit: chart.Counts}
	if w.bytes {
		axis.Unit = chart.MessageBytes
	}
	if pic.figure != "" {
		note += "; thin lines: least-squares fit"
	}
	value := pic.value
	if pic.bases != nil {
		if value = res.multiple(pic, group); value == nil {
			return &chart.Chart{}
		}
	}
	p := &chart.Chart{Title: pic.title + ", " + groupNames[group], Note: note, X: axis,
		Y: chart.Axis{Name: pic.y, Unit: pic.unit}}
	for i := range res.Sides {
		measured := &res.Sides[i]
		if measured.Group != group || len(pic.sides) > 0 && !slices.Contains(pic.sides, measured.Key) {
			continue
		}
		line := chart.Series{Name: measured.legend(), Kind: measured.lineKind(), Variant: variants[measured.Key],
			Points: measured.points(value)}
		if measured.Method != "" {
			line.Variant = methodVariant(measured.Key)
		}
		if f := r.findGrowth(res.Workload, measured.Key, pic.figure); f != nil && measured.Kind == Ours {
			line.Fit = f.valueAt
		}
		p.Series = append(p.Series, line)
	}
	return p
}

// variants assigns different line styles to sides of the same kind that appear in the same plot.
var variants = map[string]int{
	"raw-udp-sleep": 1, "raw-udp-segment": 1, rawGRO: 2,
	"cloudfpga-xdp": 1, "extended-veth": 2, "extended-xdp": 3, rawXDP: 1,
	"v0.9": 1, "extended-udp": 2, "extended-tcp": 3, "attached": 4, "attached-one": 5, "extended-shm": 2,
	"mpich-tcp": 1, mpichShm: 1, upstreamKey: 2, upstreamOneKey: 3,
}

// multiple returns a function that divides the picture's value by the value of the group's base. It returns nil if
// there is no base.
func (r *Result) multiple(pic picture, g Group) func(Point) float64 {
	for _, key := range pic.bases {
		if base := r.side(key); base != nil && base.Group == g {
			return func(p Point) float64 {
				if at := base.point(p.N); at != nil && pic.value(*at) > 0 {
					return pic.value(p) / pic.value(*at)
				}
				return 0
			}
		}
	}
	return nil
}

// lineKind returns the line style of a side.
func (s *Side) lineKind() chart.Kind {
	switch {
	case s.Method != "":
		return chart.Method
	case s.Kind == Ours:
		return chart.Ours
	case s.Kind == Limit:
		return chart.Limit
	}
	return chart.Peer
}

// legend returns the side's name for the legend.
func (s *Side) legend() string {
	if s.Method == "" {
		return s.Name
	}
	m, err := parseMethod(s.Method)
	if err != nil {
		return s.Name
	}
	return m.title()
}

// points returns the median of a value at each step, with bars from the minimum to the maximum over all rounds.
func (m *Measured) points(value func(Point) float64) []chart.Point {
	points := make([]chart.Point, len(m.Median))
	for i, p := range m.Median {
		point := chart.Point{X: float64(p.N), Y: value(p)}
		if len(m.Rounds) == 0 { // archived: there are only medians
			point.Low, point.High = point.Y, point.Y
		}
		for _, round := range m.Rounds {
			v := value(round[i])
			if point.Low == 0 || v < point.Low {
				point.Low = v
			}
			point.High = max(point.High, v)
		}
		points[i] = point
	}
	return points
}
