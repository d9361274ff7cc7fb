package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/zrlmpi/zrlmpid/bench/plot"
)

// draw writes the workload's plots into a folder.
func (r *report) draw(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, p := range r.plots() {
		if err := os.WriteFile(filepath.Join(folder, name+".svg"), p.SVG(), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// plots returns the plots by the names of their files.
func (r *report) plots() map[string]*plot.Plot {
	p50 := func(p point) float64 { return p.P50 }
	if r.Workload == "queues" {
		return map[string]*plot.Plot{
			"queues-latency": r.plot("Latency beside posted receives that do not match", "half round trip, p50", lower, plot.Microseconds, p50),
			"queues-unload": r.plot("Time to unload the posted receives, in reverse order", "time", lower, plot.Microseconds, func(p point) float64 {
				if p.N == 0 {
					return 0 // which is left out
				}
				return p.Unload
			}),
		}
	}
	return map[string]*plot.Plot{
		"pingpong-latency":   r.plot("Time of a message", "half round trip, p50", lower, plot.Microseconds, p50),
		"pingpong-bandwidth": r.plot("Ping-pong bandwidth", "bytes per second", higher, plot.Bytes, func(p point) float64 { return float64(p.N) / p.P50 * 1e6 }),
	}
}

// Which end of an axis is the better one.
const lower, higher = "lower is better", "higher is better"

// note says what the points are.
func (r *report) note(better string) string {
	text := better
	if r.Rounds > 1 {
		text = fmt.Sprintf("median of %d rounds, with a bar from the least to the most; %s", r.Rounds, better)
	}
	return text
}

// plot draws a value of all sides.
func (r *report) plot(title, y, better string, unit plot.Unit, value func(point) float64) *plot.Plot {
	p := &plot.Plot{Title: title, Note: r.note(better), X: plot.Axis{Name: r.Unit, Unit: plot.Count}, Y: plot.Axis{Name: y, Unit: unit}}
	if r.Workload != "queues" {
		p.X = plot.Axis{Name: "message", Unit: plot.BinaryBytes}
	}
	for _, s := range r.Sides {
		line := plot.Series{Name: s.Name, Strong: !s.Peer}
		for i, m := range s.Median {
			q := plot.Point{X: float64(m.N), Y: value(m)}
			for _, round := range s.Rounds {
				v := value(round[i])
				if q.Low == 0 || v < q.Low {
					q.Low = v
				}
				q.High = max(q.High, v)
			}
			line.Points = append(line.Points, q)
		}
		p.Series = append(p.Series, line)
	}
	return p
}
