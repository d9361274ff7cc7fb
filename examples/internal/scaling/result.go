package scaling

import (
	"fmt"
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
)

// Result is what was measured.
type Result struct {
	title    string
	Datatype Datatype `json:"datatype"`
	// Repeat is how many times each time is the median of, and Cores how many
	// ranks of this machine can compute at once.
	Repeat int `json:"repeat"`
	Cores  int `json:"cores"`
	// Pace is how long a multiplication with its addition was to take, in
	// microseconds; 0 is as fast as can be.
	Pace float64 `json:"pace_us,omitempty"`
	Times
	// Numbers is how many numbers have been compared with those of one processor,
	// and WrongNumbers how many of them differ.
	Numbers      int `json:"numbers"`
	WrongNumbers int `json:"wrong_numbers"`
	// Paper is there if the user wants it.
	Paper *Paper `json:"paper,omitempty"`
}

// Times are those of several problems and numbers of processors.
type Times struct {
	Processors []int `json:"processors"`
	Sizes      []Row `json:"sizes"`
}

// Paper is a table of the paper.
type Paper struct {
	// Table is its number there.
	Table string `json:"table"`
	Times
}

// Row is one problem.
type Row struct {
	Size  int    `json:"size"`
	Times []Time `json:"times"`
}

// Time is how long a number of processors took, in milliseconds; Deal is the median of
// what is not in it. Speedup is how many times as long one processor took, and Efficiency
// that by the processors.
type Time struct {
	Processors int     `json:"processors"`
	Millis     float64 `json:"ms"`
	Min        float64 `json:"min_ms,omitempty"`
	Max        float64 `json:"max_ms,omitempty"`
	Deal       float64 `json:"deal_ms,omitempty"`
	Speedup    float64 `json:"speedup"`
	Efficiency float64 `json:"efficiency"`
}

// timeOf sums up runs, of which there is at least one.
func timeOf(processors int, runs []Run) Time {
	var times, deals []time.Duration
	for _, r := range runs {
		times, deals = append(times, r.Time), append(deals, r.Deal)
	}
	t := demo.TimesOf(times)
	return Time{
		Processors: processors, Millis: millis(t.Median), Min: millis(t.Min), Max: millis(t.Max),
		Deal: millis(demo.TimesOf(deals).Median),
	}
}

// millis are those of microseconds, in whole nanoseconds.
func millis(us float64) float64 { return math.Round(us*1e3) / 1e6 }

// add adds a time. The first one is that of one processor.
func (r *Row) add(t Time) {
	r.Times = append(r.Times, t)
	last := &r.Times[len(r.Times)-1]
	last.Speedup = r.Times[0].Millis / t.Millis
	last.Efficiency = last.Speedup / float64(t.Processors)
}

// NewPaper makes a table of the paper from its times in milliseconds: by size, in the
// order of the paper's numbers of processors.
func NewPaper(table string, sizes []int, millis [][]float64) *Paper {
	p := &Paper{Table: table, Times: Times{Processors: paperProcessors}}
	for i, size := range sizes {
		row := Row{Size: size}
		for j, ms := range millis[i] {
			row.add(Time{Processors: paperProcessors[j], Millis: ms})
		}
		p.Sizes = append(p.Sizes, row)
	}
	return p
}

// Wrong implements demo.Result.
func (r *Result) Wrong() string {
	if r.WrongNumbers == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d numbers differ from those of one processor", r.WrongNumbers, r.Numbers)
}
