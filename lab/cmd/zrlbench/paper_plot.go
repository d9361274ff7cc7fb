package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/chart"
	"github.com/zrlmpi/zrlmpid/lab/sim/bcast"
)

// chartFile combines a chart with the name of the file into which it is drawn.
type chartFile struct {
	name  string
	chart chart.Chart
}

// drawAll writes charts into a folder, which it creates if necessary. If folder is empty, it does nothing.
func drawAll(folder string, charts []chartFile) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for i := range charts {
		image, err := charts[i].chart.SVG()
		if err != nil {
			return fmt.Errorf("%s: %w", charts[i].name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, charts[i].name), image, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// svgFlag adds the flag that names the folder for plots.
func svgFlag(cmd *cobra.Command, folder *string) {
	cmd.Flags().StringVar(folder, "svg", "", "draw plots into this `folder`")
}

// addLine adds a line to a chart. The line has its own colour, dashes and marker.
func addLine(c *chart.Chart, name string) {
	c.Series = append(c.Series, chart.Series{Name: name, Kind: chart.Model, Variant: len(c.Series)})
}

// addPoint adds a point to line i of a chart.
func addPoint(c *chart.Chart, i int, x, y float64) {
	c.Series[i].Points = append(c.Series[i].Points, chart.Point{X: x, Y: y})
}

// figureCharts returns a chart for each number of nodes, as in figures 18 to 21 of the source.
func figureCharts(cells []bcast.Cell) (charts []chartFile) {
	for i, cell := range cells {
		if i == 0 || cells[i-1].Nodes != cell.Nodes {
			charts = append(charts, chartFile{fmt.Sprintf("bcast-%d.svg", cell.Nodes), chart.Chart{
				Title: fmt.Sprintf("Atomic broadcasts of %d nodes: time with a fixed order by that with a changed one",
					cell.Nodes),
				X: chart.Axis{Name: "message length", Unit: chart.MessageBytes},
				Y: chart.Axis{Name: "ratio of times", Unit: chart.Multiple},
			}})
		}
		drawn := &charts[len(charts)-1].chart
		if i == 0 || cells[i-1].Nodes != cell.Nodes || cells[i-1].BusyBytes != cell.BusyBytes {
			addLine(drawn, fmt.Sprintf("%d bytes under way", cell.BusyBytes))
		}
		addPoint(drawn, len(drawn.Series)-1, float64(cell.Bytes), cell.Ratio)
	}
	return charts
}

// matchChart returns a chart with a line for each design, and one for the engine.
func matchChart(benchmark string, results []simulatedMatch) []chartFile {
	c := chart.Chart{
		Title: "Message matching: " + benchmark,
		X:     chart.Axis{Name: "depth", Unit: chart.Counts}, Y: chart.Axis{Name: "time", Unit: chart.Microseconds},
	}
	engine := chart.Series{Name: "engine, measured", Kind: chart.Ours}
	for _, match := range results {
		for i, d := range match.Designs {
			if i == len(c.Series) {
				addLine(&c, d.Name)
			}
			addPoint(&c, i, float64(match.Depth), d.Time/1000)
		}
		if match.Engine != nil {
			engine.Points = append(engine.Points, chart.Point{X: float64(match.Depth), Y: *match.Engine / 1000})
		}
	}
	c.Series = append(c.Series, engine)
	return []chartFile{{"match-" + benchmark + ".svg", c}}
}

// programChart returns a chart with a line for each size.
func programChart(program string, results []simulatedProgram) []chartFile {
	c := chart.Chart{
		Title: program + " on processors with a shared memory",
		X:     chart.Axis{Name: "processors", Unit: chart.Counts},
		Y:     chart.Axis{Name: "time", Unit: chart.Microseconds},
	}
	for i, r := range results {
		if i == 0 || results[i-1].Size != r.Size {
			addLine(&c, fmt.Sprintf("%d × %[1]d", r.Size))
		}
		addPoint(&c, len(c.Series)-1, float64(r.Processors), r.Time*1000)
	}
	return []chartFile{{program + ".svg", c}}
}
