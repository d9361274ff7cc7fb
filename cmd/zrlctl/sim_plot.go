package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/internal/sim/bcast"
	"github.com/zrlmpi/zrlmpid/internal/sim/plot"
)

// chartFile is a chart and the name of its file.
type chartFile struct {
	name  string
	chart plot.Chart
}

// drawAll writes charts into a folder, which it makes if there is none; "" draws nothing.
func drawAll(folder string, charts []chartFile) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for i := range charts {
		if err := writeFile(filepath.Join(folder, charts[i].name), charts[i].chart.WriteSVG); err != nil {
			return err
		}
	}
	return nil
}

// svgFlag adds the flag for plots.
func svgFlag(cmd *cobra.Command, folder *string) {
	cmd.Flags().StringVar(folder, "svg", "", "draw plots into this `folder`")
}

// figureCharts has a chart for each number of nodes, as figures 18 to 21 of the source.
func figureCharts(cells []bcast.Cell) (charts []chartFile) {
	for i, c := range cells {
		if i == 0 || cells[i-1].Nodes != c.Nodes {
			charts = append(charts, chartFile{fmt.Sprintf("bcast-%d.svg", c.Nodes), plot.Chart{
				Title: fmt.Sprintf("Atomic broadcasts of %d nodes: time with a fixed order by that with a changed one", c.Nodes), X: "bytes", Y: "ratio of times",
			}})
		}
		chart := &charts[len(charts)-1].chart
		if i == 0 || cells[i-1].Nodes != c.Nodes || cells[i-1].Left != c.Left {
			chart.Lines = append(chart.Lines, plot.Line{Name: fmt.Sprintf("%d bytes under way", c.Left)})
		}
		l := &chart.Lines[len(chart.Lines)-1]
		l.Points = append(l.Points, plot.Point{X: float64(c.Bytes), Y: c.Ratio})
	}
	return charts
}

// matchChart has a line for each design, and for the engine.
func matchChart(benchmark string, results []simulatedMatch) []chartFile {
	c := plot.Chart{Title: "Message matching: " + benchmark, X: "depth", Y: "time, ns"}
	engine := plot.Line{Name: "engine, measured"}
	for _, r := range results {
		for i, d := range r.Designs {
			if i == len(c.Lines) {
				c.Lines = append(c.Lines, plot.Line{Name: d.Name})
			}
			c.Lines[i].Points = append(c.Lines[i].Points, plot.Point{X: float64(r.Depth), Y: d.Time})
		}
		if r.Engine != nil {
			engine.Points = append(engine.Points, plot.Point{X: float64(r.Depth), Y: *r.Engine})
		}
	}
	c.Lines = append(c.Lines, engine)
	return []chartFile{{"match-" + benchmark + ".svg", c}}
}

// programChart has a line for each size.
func programChart(program string, results []simulatedProgram) []chartFile {
	c := plot.Chart{Title: program + " on processors with a shared memory", X: "processors", Y: "time, ms"}
	for i, r := range results {
		if i == 0 || results[i-1].Size != r.Size {
			c.Lines = append(c.Lines, plot.Line{Name: fmt.Sprintf("%d × %[1]d", r.Size)})
		}
		l := &c.Lines[len(c.Lines)-1]
		l.Points = append(l.Points, plot.Point{X: float64(r.Processors), Y: r.Time})
	}
	return []chartFile{{program + ".svg", c}}
}
