package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/zrlmpi/zrlmpid/lab/bench/plot"
)

// Which end of an axis is the better one.
const lower, higher = "lower is better", "higher is better"

// picture is a plot of a workload's sides.
type picture struct {
	workload, name, title, y, better string
	unit                             plot.Unit
	value                            func(Point) float64
	// figure is what the line of least squares is of, "" draws none.
	figure string
	// sides are those that are drawn; none is all.
	sides []string
	// bases are the sides of which it is a multiple: for each group one.
	bases []string
}

var pictures = []picture{
	{"pingpong", "latency", "Time of a message", "half round trip, p50", lower, plot.Microseconds, p50, "p50", nil, nil},
	{"pingpong", "bandwidth", "Ping-pong bandwidth", "bytes per second", higher, plot.Bytes, perSecond, "", nil, nil},
	{"rate", "", "Message rate, 64 in flight", "messages per second", higher, plot.PerSecond, func(p Point) float64 { return 1e6 / p.P50 }, "", nil, nil},
	{"stream", "", "Bandwidth one way, 4 messages in flight", "bytes per second", higher, plot.Bytes, perSecond, "", nil, nil},
	{"multipair", "", "Message rate of several pairs together", "messages per second", higher, plot.PerSecond, func(p Point) float64 { return 1e6 / p.P50 }, "", nil, nil},
	{"ring", "", "Time of a hop in a ring", "hop, p50", lower, plot.Microseconds, p50, "p50", nil, nil},
	{"queues", "latency", "Latency beside posted receives that do not match", "half round trip, p50", lower, plot.Microseconds, p50, "p50", nil, nil},
	{"queues", "unload", "Time to unload the posted receives, in reverse order", "time", lower, plot.Microseconds, unloadTime, "unload", nil, nil},
	{"bcast", "", "Time of a broadcast to 8 ranks", "time, p50", lower, plot.Microseconds, p50, "", bcastSides, nil},
	{"bcast", "ratio", "Time of a broadcast to 8 ranks as a multiple of Open MPI's", "times Open MPI's, p50", lower, plot.Multiple, p50, "", bcastSides, openMPI},
	{"bcast-busy", "", "Time of a broadcast to 8 ranks, one busy", "time, p50", lower, plot.Microseconds, p50, "", bcastSides, nil},
	{"bcast-busy", "ratio", "Time of a broadcast to 8 ranks, one busy, as a multiple of Open MPI's", "times Open MPI's, p50", lower, plot.Multiple, p50, "", bcastSides, openMPI},
}

var (
	openMPI = []string{openMPITCP, openMPIShm}
	// bcastSides are the ways to broadcast over UDP and shared memory, and the peers.
	bcastSides = slices.Concat([]string{extendedUDP.key, extendedShm.key, "mpich-tcp", mpichShm}, extendedUDP.methodKeys(), extendedShm.methodKeys(), openMPI)
)

func p50(p Point) float64       { return p.P50 }
func perSecond(p Point) float64 { return float64(p.N) / p.P50 * 1e6 }

// unloadTime is 0, and so not drawn, where there is nothing to unload.
func unloadTime(p Point) float64 {
	if p.N == 0 {
		return 0
	}
	return p.Unload
}

// Draw writes the plots into a folder.
func (r *Report) Draw(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for i := range r.Results {
		for _, d := range r.plots(&r.Results[i]) {
			if err := os.WriteFile(filepath.Join(folder, d.name+".svg"), d.plot.SVG(), 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawing is a plot and the name of its file.
type drawing struct {
	name string
	plot *plot.Plot
}

// plots returns the plots of a workload: of each group of sides that is there.
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
		for _, g := range []Group{Network, Memory} {
			if p := r.plot(pic, res, g); len(p.Series) > 0 {
				all = append(all, drawing{name + "-" + string(g), p})
			}
		}
	}
	return all
}

// plot draws a value of all sides of a group.
func (r *Report) plot(pic picture, res *Result, g Group) *plot.Plot {
	note := pic.better
	if r.Rounds > 1 {
		note = fmt.Sprintf("median of %d rounds, with a bar from the least to the most; %s", r.Rounds, note)
	}
	w, err := workloadNamed(res.Workload)
	if err != nil {
		return &plot.Plot{}
	}
	x := plot.Axis{Name: w.unit, Unit: plot.Count}
	if w.bytes {
		x.Unit = plot.BinaryBytes
	}
	if pic.figure != "" {
		note += "; thin: the line of least squares"
	}
	value := pic.value
	if pic.bases != nil {
		if value = res.multiple(pic, g); value == nil {
			return &plot.Plot{}
		}
	}
	p := &plot.Plot{Title: pic.title + ", " + groupNames[g], Note: note, X: x, Y: plot.Axis{Name: pic.y, Unit: pic.unit}}
	for i := range res.Sides {
		s := &res.Sides[i]
		if s.Group != g || len(pic.sides) > 0 && !slices.Contains(pic.sides, s.Key) {
			continue
		}
		line := plot.Series{Name: s.Key, Kind: s.plotKind(), Look: looks[s.Key], Points: s.drawn(value)}
		if s.Method != "" {
			line.Look = methodLook(s.Key)
		}
		if f := r.grown(res.Workload, s.Key, pic.figure); f != nil && s.Kind == Ours {
			line.Fit = f.at
		}
		p.Series = append(p.Series, line)
	}
	return p
}

// looks tell the sides of a kind apart that are in the same plots.
var looks = map[string]int{
	"raw-udp-sleep": 1, "raw-udp-segment": 1, rawGRO: 2,
	"v0.9": 1, "extended-udp": 2, "extended-tcp": 3, "attached": 4, "extended-shm": 2,
	"mpich-tcp": 1, mpichShm: 1, upstreamKey: 2, upstreamOneKey: 3,
}

// multiple makes the picture's value one of the group's base, or is nil.
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

// plotKind is how a side is drawn.
func (s *Side) plotKind() plot.Kind {
	switch {
	case s.Method != "":
		return plot.Fine
	case s.Kind == Ours:
		return plot.Strong
	case s.Kind == Limit:
		return plot.Limit
	}
	return plot.Other
}

// drawn returns the medians of a value, each with what it was in the rounds.
func (m *Measured) drawn(value func(Point) float64) []plot.Point {
	points := make([]plot.Point, len(m.Median))
	for i, p := range m.Median {
		q := plot.Point{X: float64(p.N), Y: value(p)}
		for _, round := range m.Rounds {
			v := value(round[i])
			if q.Low == 0 || v < q.Low {
				q.Low = v
			}
			q.High = max(q.High, v)
		}
		points[i] = q
	}
	return points
}
