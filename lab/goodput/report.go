package goodput

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/lab/bench"
)

// Report is the result of a measurement. WriteJSON writes it as JSON, and Load reads it back.
type Report struct {
	Machine bench.Machine `json:"machine"`
	// Failed lists the measurements that failed.
	Failed []string `json:"failed,omitempty"`
	Cells  []Cell   `json:"cells"`
}

// Err returns an error that lists the failed measurements, or nil.
func (r *Report) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	return errors.New("failed: " + strings.Join(r.Failed, "\nfailed: "))
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "\t")
	return e.Encode(r)
}

// Save writes the report to a file as JSON.
func (r *Report) Save(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(r.WriteJSON(f), f.Close())
}

// Load reads reports that Save wrote to one or more files, and merges the rounds of equal cells. The first file
// provides the description of the machine.
func Load(files ...string) (*Report, error) {
	var all Report
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var report Report
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(report.Cells) == 0 {
			return nil, fmt.Errorf("%s: there are no cells in it", file)
		}
		if i == 0 {
			all.Machine = report.Machine
		}
		all.Failed = append(all.Failed, report.Failed...)
		for _, c := range report.Cells {
			all.addCell(c)
		}
	}
	return &all, nil
}

// Archive returns the report in the form kept in lab/results: as tables.
func (r *Report) Archive() *bench.Report {
	report := &bench.Report{Machine: r.Machine, Failed: r.Failed}
	for _, part := range Parts() {
		rows := rows(part, r.cellsOf(part))
		if len(rows) > 1 {
			report.Tables = append(report.Tables,
				bench.Table{Title: titles[part], Command: "zrlbench goodput " + part, Columns: rows[0], Rows: rows[1:]})
		}
	}
	for i := range r.Cells {
		for k := range r.Cells[i].Runs {
			report.Rounds = max(report.Rounds, len(r.Cells[i].Runs[k].Rounds))
		}
	}
	return report
}

// cellsOf returns the cells that belong to a part.
func (r *Report) cellsOf(part string) (cells []*Cell) {
	for i := range r.Cells {
		if r.Cells[i].Part == part {
			cells = append(cells, &r.Cells[i])
		}
	}
	return cells
}

// addCell adds a cell. If there is an equal one, it adds the rounds to that cell.
func (r *Report) addCell(cell Cell) {
	i := slices.IndexFunc(r.Cells, func(have Cell) bool { return have.hasSamePath(&cell) })
	if i < 0 {
		r.Cells = append(r.Cells, cell)
		return
	}
	for _, run := range cell.Runs {
		if have := r.Cells[i].findRun(run.Flows...); have != nil {
			have.Rounds = append(have.Rounds, run.Rounds...)
		} else {
			r.Cells[i].Runs = append(r.Cells[i].Runs, run)
		}
	}
}

// findRun returns the cell's measurement of the given flows, or nil if they were not measured.
func (c *Cell) findRun(flows ...string) *Measured {
	for i := range c.Runs {
		if slices.Equal(c.Runs[i].Flows, flows) {
			return &c.Runs[i]
		}
	}
	return nil
}

// median returns the median of a figure over the rounds. ok is false if there are no rounds.
func (r *Measured) median(figure func(*Round) float64) (value float64, ok bool) {
	if r == nil || len(r.Rounds) == 0 {
		return 0, false
	}
	values := make([]float64, len(r.Rounds))
	for i := range r.Rounds {
		values[i] = figure(&r.Rounds[i])
	}
	return median(values), true
}

// median sorts values and returns their median. values must not be empty.
func median(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}

// roundsWithSeed returns only the rounds with the given seed.
func (r *Measured) roundsWithSeed(seed int) *Measured {
	return &Measured{Rounds: slices.DeleteFunc(slices.Clone(r.Rounds), func(x Round) bool { return x.Seed != seed })}
}

// flowGoodput returns a function that returns the goodput of one flow in a round.
func flowGoodput(flow int) func(*Round) float64 {
	return func(r *Round) float64 { return r.Flows[flow].goodput() }
}

// queueMean and queueP99 return the mean and the 99th percentile of the queueing delay, in the direction in which the
// data travels.
func queueMean(r *Round) float64 { return r.Path.Directions[0].QueueMean }
func queueP99(r *Round) float64  { return r.Path.Directions[0].QueueP99 }

// firstShare returns the share of the first flow in the total goodput.
func firstShare(r *Round) float64 {
	sum := 0.0
	for i := range r.Flows {
		sum += r.Flows[i].goodput()
	}
	if sum == 0 {
		return 0
	}
	return r.Flows[0].goodput() / sum
}

// ratio divides the goodput of a side by the goodput of TCP CUBIC. It returns the median of the ratios for all seeds
// with which both were measured, because the choice of lost packets makes more difference than the choice of side.
func (c *Cell) ratio(side string) (value float64, ok bool) {
	ours, base := c.findRun(side), c.findRun(tcpCubic)
	if ours == nil || base == nil {
		return 0, false
	}
	ratios := map[int]float64{}
	for i := range base.Rounds {
		seed := base.Rounds[i].Seed
		a, found := ours.roundsWithSeed(seed).median(flowGoodput(0))
		if b, _ := base.roundsWithSeed(seed).median(flowGoodput(0)); found && b > 0 {
			ratios[seed] = a / b
		}
	}
	if len(ratios) == 0 {
		return 0, false
	}
	return median(slices.Collect(maps.Values(ratios))), true
}
