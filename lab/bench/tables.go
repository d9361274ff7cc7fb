package bench

import "fmt"

// sheet specifies the tables for one or several workloads. A table contains a row for each step, and a column for each
// side in a group.
type sheet struct {
	workload, title string
	cell            func(p *Point, s *Measured) string
}

var sheets = []sheet{
	{"pingpong", "Half round trip in µs, p50 / p99 / p99.9", spread},
	{"pingpong", "MB/s (10⁶ bytes, by the p50)", bandwidth},
	{"pingpong", "Processor time of a message in µs, all processes", processor},
	{"rate", "Time of a message in µs, 64 in flight, p50 / p99 / p99.9 of windows", spread},
	{"rate", "Thousand messages a second, 64 in flight (by the p50 of windows)", thousands},
	{"rate", "Processor time of a message in µs, all processes", processor},
	{"stream", "Time of a message in µs, 4 in flight, p50 / p99 / p99.9 of windows", spread},
	{"stream", "MB/s (10⁶ bytes, by the p50 of windows of 4)", bandwidth},
	{"stream", "Processor time of a message in µs, all processes", processor},
	{"multipair", "Thousand messages a second of all pairs together, 64 of each in flight", thousands},
	{"multipair", "Processor time of a message in µs, all processes", processor},
	{"ring", "Time of a hop in µs, p50 / p99 / p99.9", spread},
	{"ring", "Processor time of a hop in µs, all processes", processor},
	{"queues", "Half round trip in µs, p50 / p99 / p99.9, and how many times the p50 of the first row", timesFirst},
	{"queues", "Time to unload the queue in reverse order, in ms", unload},
}

// collectiveSheets are the sheets for all collective operations.
var collectiveSheets = []sheet{
	{"", "Time of the operation in µs, p50 / p99 / p99.9", spread},
	{"", "Processor time in µs, all processes, for each rank that gets a result", processor},
}

func spread(p *Point, _ *Measured) string {
	if p.P999 == 0 { // some archived runs lack it
		return formatFigure(p.P50) + " / " + formatFigure(p.P99)
	}
	return formatFigure(p.P50) + " / " + formatFigure(p.P99) + " / " + formatFigure(p.P999)
}
func bandwidth(p *Point, _ *Measured) string { return formatFigure(float64(p.N) / p.P50) }
func thousands(p *Point, _ *Measured) string { return formatFigure(1e3 / p.P50) }
func processor(p *Point, _ *Measured) string {
	if p.CPU == 0 {
		return noFigure
	}
	return formatFigure(p.CPU)
}
func unload(p *Point, _ *Measured) string {
	if p.N == 0 {
		return noFigure
	}
	return formatFigure(p.Unload / 1e3)
}
func timesFirst(p *Point, s *Measured) string {
	return fmt.Sprintf("%s ×%.2f", spread(p, s), p.P50/s.Median[0].P50)
}

// noFigure is shown in place of a missing figure.
const noFigure = "–"

// tables returns the tables of a workload.
func (r *Report) tables(res *Result) []*table {
	var all []*table
	if res.Workload == "idle" {
		all = append(all, idleTable(res))
	}
	of := sheets
	if w, err := workloadNamed(res.Workload); err == nil && w.isCollective {
		of = collectiveSheets
	}
	for _, sh := range of {
		if sh.workload == "" || sh.workload == res.Workload {
			all = append(all, sh.tables(res)...)
		}
	}
	all = append(all, disturbedTables(res)...)
	for _, sh := range ratioSheets {
		if sh.workload != "" && sh.workload != res.Workload {
			continue
		}
		if t := sh.table(res); t != nil {
			all = append(all, t)
		}
	}
	all = append(all, r.growthTables(res)...)
	if t := memoryTable(res); t != nil {
		all = append(all, t)
	}
	return all
}

// tables returns a table for each group that contains sides.
func (sh *sheet) tables(res *Result) (all []*table) {
	for _, g := range groups {
		if t := sh.table(res, g); t != nil {
			all = append(all, t)
		}
	}
	return all
}

// disturbedTables returns tables that compare the times measured while a neighbour used the processors with the times
// measured without it.
func disturbedTables(res *Result) []*table {
	sh := sheet{
		title: "With a neighbour that takes a fifth of each processor: time in µs, p50 / p99 / p99.9, and how many " +
			"times the p50 without it",
		cell: func(point *Point, s *Measured) string {
			text := spread(point, s)
			if point.P99 == 0 { // there is only a mean
				text = formatFigure(point.P50)
			}
			if idle := res.side(s.Key).point(point.N); idle != nil && idle.P50 > 0 {
				text += fmt.Sprintf(" ×%.2f", point.P50/idle.P50)
			}
			return text
		},
	}
	return sh.tables(res.disturbedResult())
}

var groupNames = map[Group]string{Network: "over the network", Hosts: "between two hosts", Memory: "within the host"}

func (sh *sheet) table(res *Result, group Group) *table {
	w, err := workloadNamed(res.Workload)
	if err != nil {
		return nil
	}
	t := &table{title: sh.title + ": " + groupNames[group], headings: []string{w.unit}}
	var sides []*Measured
	for i := range res.Sides {
		if s := &res.Sides[i]; s.Group == group {
			sides = append(sides, s)
			t.headings = append(t.headings, s.Key)
		}
	}
	if len(sides) == 0 {
		return nil
	}
	found := false
	for _, n := range res.stepNumbers() {
		row := []string{w.label(n)}
		for _, s := range sides {
			cell := noFigure
			if p := s.point(n); p != nil {
				cell = sh.cell(p, s)
			} else if c := s.findCut(n); c != nil {
				cell = c.String()
			}
			found = found || cell != noFigure
			row = append(row, cell)
		}
		t.add(row...)
	}
	if !found {
		return nil
	}
	return t
}

// idleTable returns a table of the processor usage of idle and waiting ranks, with a row for each side.
func idleTable(res *Result) *table {
	t := &table{title: "Percent of a processor after the first second",
		headings: []string{"", "idle", "waits in a receive"}}
	for i := range res.Sides {
		s := &res.Sides[i]
		if len(s.Median) == 0 {
			continue
		}
		p := s.Median[0]
		t.add(s.Key, fmt.Sprintf("%.2f", p.Resting), fmt.Sprintf("%.2f", p.Waiting))
	}
	return t
}

// ratioSheet specifies a table of ratios. The ratios are of one figure, in one workload or in all of them.
type ratioSheet struct{ workload, figure, title string }

var ratioSheets = []ratioSheet{
	{"", "p50", "Time of a message as a multiple of that of another side (below 1 is faster)"},
	{"pingpong", "p99", "The same of the p99"},
}

// table returns the table of ratios, or nil without ratios.
func (sh *ratioSheet) table(res *Result) *table {
	w, err := workloadNamed(res.Workload)
	if err != nil {
		return nil
	}
	t := &table{title: sh.title, headings: []string{w.unit}}
	ns := res.stepNumbers()
	rows := make([][]string, len(ns))
	for i, n := range ns {
		rows[i] = []string{w.label(n)}
	}
	for _, c := range comparisons {
		if !c.appliesTo(res.Workload) {
			continue
		}
		column, found := make([]string, len(ns)), false
		for i, n := range ns {
			column[i] = noFigure
			if v, ok := c.ratio(res, n, sh.figure); ok {
				column[i], found = fmt.Sprintf("%.2f", v.Value), true
			}
		}
		if !found {
			continue
		}
		t.headings = append(t.headings, c.name())
		for i := range rows {
			rows[i] = append(rows[i], column[i])
		}
	}
	if len(t.headings) == 1 {
		return nil
	}
	t.rows = rows
	return t
}

// growthTables returns tables of the lines that were fitted to a workload's figures.
func (r *Report) growthTables(res *Result) []*table {
	var all []*table
	for _, figure := range growths {
		if figure.workload != res.Workload {
			continue
		}
		t := &table{
			title:    figure.title + ": least-squares line",
			headings: []string{"", "a message, µs", "each " + figure.per + ", ns", "deviation, %"},
		}
		for i := range res.Sides {
			if f := r.findGrowth(figure.workload, res.Sides[i].Key, figure.figure); f != nil {
				t.add(f.Side, formatSigned(f.Intercept), formatSigned(f.Slope), fmt.Sprintf("%.0f", f.Deviation*100))
			}
		}
		if len(t.rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// memoryTable returns the peak memory of each side, or nil if it is unknown.
func memoryTable(res *Result) *table {
	t := &table{title: "Peak memory of a process, in MiB"}
	var row []string
	for i := range res.Sides {
		// The memory of a method is included in the memory of its side.
		if s := &res.Sides[i]; s.Method == "" && s.Memory > 0 {
			t.headings, row = append(t.headings, s.Key), append(row, formatFigure(float64(s.Memory)/1024))
		}
	}
	if len(row) == 0 {
		return nil
	}
	t.add(row...)
	return t
}
