package scaling

import (
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
)

// Study collects times. Rank 0 does, of one cluster after another.
type Study struct {
	Options
	// Title says what is computed.
	Title string
	// Table is the paper's.
	Table *Paper

	runs           map[cell][]Run
	numbers, wrong int
}

// cell is a problem solved by so many processors.
type cell struct{ size, processors int }

// Run is how long it took to solve a problem once. Deal is how long it took to give all
// processors their parts before, where that is not in Time.
type Run struct{ Time, Deal time.Duration }

// Run is one rank's part: rank 0 measures each problem, and all others work for it as
// often as it wants that.
func (s *Study) Run(rank int, measure func(size int) error, work func() error) (demo.Result, error) {
	for _, size := range s.Sizes {
		if rank == 0 {
			if err := measure(size); err != nil {
				return nil, err
			}
			continue
		}
		for range s.Repeat {
			if err := work(); err != nil {
				return nil, err
			}
		}
	}
	if rank != 0 {
		return nil, nil
	}
	return s.result(), nil
}

// Measure has a problem solved by one processor, unless that has been measured, and by
// all ranks of a cluster, and compares the results.
func Measure[T float32 | float64](s *Study, size, ranks int, serial, parallel func() ([]T, Run, error)) error {
	want, _, err := serial()
	if err != nil {
		return err
	}
	for one := (cell{size, 1}); len(s.runs[one]) < s.Repeat; {
		_, run, err := serial()
		if err != nil {
			return err
		}
		s.add(one, run)
	}
	for range s.Repeat {
		got, run, err := parallel()
		if err != nil {
			return err
		}
		compare(s, got, want)
		if ranks > 1 {
			s.add(cell{size, ranks}, run)
		}
	}
	return nil
}

func (s *Study) add(at cell, r Run) {
	if s.runs == nil {
		s.runs = make(map[cell][]Run)
	}
	r.Time = max(r.Time, 1) // of a coarse clock
	s.runs[at] = append(s.runs[at], r)
}

// compare counts the numbers of a result that differ in any bit from those of one
// processor.
func compare[T float32 | float64](s *Study, got, want []T) {
	s.numbers += len(want)
	for i, x := range want {
		if math.Float64bits(float64(got[i])) != math.Float64bits(float64(x)) {
			s.wrong++
		}
	}
}

// result sums up what there is.
func (s *Study) result() *Result {
	r := &Result{
		title: s.Title, Datatype: s.Datatype, Repeat: s.Repeat, Cores: runtime.NumCPU(),
		Pace:    float64(s.Pace) / float64(time.Microsecond),
		Numbers: s.numbers, WrongNumbers: s.wrong,
	}
	var processors []int
	for at := range s.runs {
		processors = append(processors, at.processors)
	}
	slices.Sort(processors)
	r.Processors = slices.Compact(processors)
	for _, size := range s.Sizes {
		row := Row{Size: size}
		for _, p := range r.Processors {
			row.add(timeOf(p, s.runs[cell{size, p}]))
		}
		r.Sizes = append(r.Sizes, row)
	}
	if s.Paper {
		r.Paper = s.Table
	}
	return r
}
