package goodput

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// noValue is shown in place of a missing value.
const noValue = "–"

// titles maps each part to the title of its table.
var titles = map[string]string{
	partLoss:    "Goodput in MB/s (10⁶ bytes), and as a multiple of TCP CUBIC's, by round trip and loss",
	partMTU:     "By MTU",
	partReorder: "With reordering and duplicates",
	partShares:  "Two flows at once: MB/s of each, and the share of the first",
	partIntact:  "A transfer with an end: every byte as it was sent",
}

// Print writes the tables for a terminal, or as Markdown.
func (r *Report) Print(out io.Writer, markdown bool) error {
	var b strings.Builder
	for _, part := range Parts() {
		cells := r.cellsOf(part)
		if len(cells) == 0 {
			continue
		}
		if markdown {
			fmt.Fprintf(&b, "**%s**\n\n", titles[part])
		} else {
			fmt.Fprintf(&b, "%s\n", titles[part])
		}
		writeRows(&b, rows(part, cells), markdown)
		b.WriteString("\n")
	}
	r.describeRun(&b, markdown)
	_, err := io.WriteString(out, b.String())
	return err
}

// describeRun describes the run that measured the figures.
func (r *Report) describeRun(b *strings.Builder, markdown bool) {
	item := ""
	if markdown {
		item = "- "
	}
	var rounds int
	var bytes int64
	var late, cpu float64
	for i := range r.Cells {
		for k := range r.Cells[i].Runs {
			run := &r.Cells[i].Runs[k]
			rounds = max(rounds, len(run.Rounds))
			for n := range run.Rounds {
				round := &run.Rounds[n]
				for _, f := range round.Flows {
					bytes += f.Bytes
				}
				late, cpu = max(late, round.Path.Directions[0].LateP99), max(cpu, round.Path.CPU)
			}
		}
	}
	m := r.Machine
	fmt.Fprintf(b, "%smedian of %d rounds, all sides in turn; %s\n", item, rounds, m.Time)
	fmt.Fprintf(b, "%s%d × %s, %s, %s, zrlmpid %s\n", item, m.Cores, m.CPU, m.System, m.Go, m.Version)
	fmt.Fprintf(b, "%s%.0f MB, all verified; the emulator took at most %.0f %% of a processor, and 99 %% of its "+
		"packets were at most %.0f µs late\n", item, float64(bytes)/1e6, cpu, late)
	for _, text := range r.Failed {
		fmt.Fprintf(b, "%s*** FAILED: %s ***\n", item, text)
	}
}

// rows returns the rows of a table, beginning with its header.
func rows(part string, cells []*Cell) [][]string {
	switch part {
	case partShares:
		return shareRows(cells)
	case partIntact:
		return intactRows(cells)
	}
	all := [][]string{{"path"}}
	for _, s := range sides {
		all[0] = append(all[0], s)
		if s != tcpCubic {
			all[0] = append(all[0], "÷ "+tcpCubic)
		}
	}
	for _, s := range sides {
		all[0] = append(all[0], "queue of "+s+", ms")
	}
	for _, cell := range cells {
		row := []string{cell.path()}
		for _, s := range sides {
			row = append(row, formatMedian(cell.findRun(s), flowGoodput(0), "%.3g"))
			if s == tcpCubic {
				continue
			}
			text := noValue
			if v, ok := cell.ratio(s); ok {
				text = fmt.Sprintf("%.2f", v)
			}
			row = append(row, text)
		}
		for _, s := range sides {
			row = append(row, formatQueue(cell.findRun(s)))
		}
		all = append(all, row)
	}
	return all
}

// path describes the path of a cell.
func (c *Cell) path() string {
	_, text, _ := strings.Cut(c.String(), ", ")
	return text
}

func shareRows(cells []*Cell) [][]string {
	all := [][]string{{"path", "flows", "first", "second", "share", "queue, ms"}}
	for _, c := range cells {
		for i := range c.Runs {
			r := &c.Runs[i]
			all = append(all, []string{c.path(), r.name(), formatMedian(r, flowGoodput(0), "%.3g"),
				formatMedian(r, flowGoodput(1), "%.3g"),
				formatMedian(r, firstShare, "%.2f"), formatQueue(r)})
		}
	}
	return all
}

func intactRows(cells []*Cell) [][]string {
	all := [][]string{{"path", "side", "MB", "s", "MB/s", "queue, ms"}}
	for _, c := range cells {
		for i := range c.Runs {
			r := &c.Runs[i]
			all = append(all, []string{
				c.path(), r.name(), formatMedian(r, func(r *Round) float64 { return float64(r.Flows[0].Bytes) / 1e6 }, "%.1f"),
				formatMedian(r, func(r *Round) float64 { return r.Flows[0].Seconds }, "%.3g"), formatMedian(r, flowGoodput(0),
					"%.3g"),
				formatQueue(r),
			})
		}
	}
	return all
}

// formatMedian formats the median of a figure over the rounds.
func formatMedian(r *Measured, figure func(*Round) float64, format string) string {
	v, ok := r.median(figure)
	if !ok {
		return noValue
	}
	return fmt.Sprintf(format, v)
}

// formatQueue formats the queueing delay as mean / p99.
func formatQueue(r *Measured) string {
	return formatMedian(r, queueMean, "%.1f") + " / " + formatMedian(r, queueP99, "%.1f")
}

func writeRows(out *strings.Builder, rows [][]string, markdown bool) {
	if !markdown {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush() // writing to a Builder never fails
		return
	}
	for i, row := range rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(out, "| --- |%s\n", strings.Repeat(" ---: |", len(row)-1))
		}
	}
}
