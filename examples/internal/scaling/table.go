package scaling

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
)

// Table implements demo.Result.
func (r *Result) Table(w io.Writer) {
	fmt.Fprintf(w, "%s of %s; medians of %s; this machine has %s\n",
		r.title, r.Datatype, demo.Count(r.Repeat, "run"), demo.Count(r.Cores, "core"))
	if r.Pace > 0 {
		fmt.Fprintf(w, "paced: a multiplication with its addition takes %g us, which ranks need no cores for\n", r.Pace)
	}
	p := printer{w: w, ours: r.Times}
	if r.Paper != nil {
		p.paper, p.title = r.Paper.Times, "paper, table "+r.Paper.Table
	}
	p.times()
	if len(r.Processors) > 1 {
		p.speedups()
		p.efficiency()
	}
	if r.Pace == 0 && len(r.Processors) > 1 && r.most() < 1 {
		fmt.Fprint(w, "\nNo speed-up: messages take longer than to compute. For processors as slow as the paper's: -pace 9us")
	}
	if deal := r.longestDeal(); deal > 0 {
		fmt.Fprintf(w, "\nDealing the rows out took up to %s ms; it is not in the times.", digits(deal))
	}
	fmt.Fprintf(w, "\n%d of %d numbers differ from those of one processor\n", r.WrongNumbers, r.Numbers)
}

// most is the highest speed-up of several processors.
func (t Times) most() (most float64) {
	for _, row := range t.Sizes {
		for _, time := range row.Times[1:] {
			most = max(most, time.Speedup)
		}
	}
	return most
}

// longestDeal is the longest time of what is not in the times.
func (t Times) longestDeal() (most float64) {
	for _, row := range t.Sizes {
		for _, time := range row.Times {
			most = max(most, time.Deal)
		}
	}
	return most
}

// printer prints our times, and those of the paper beside them, if there are any.
type printer struct {
	w           io.Writer
	ours, paper Times
	title       string
}

// Widths of columns.
const (
	nameWidth  = 13
	oursWidth  = 9
	paperWidth = 7
)

// times prints those of each problem and number of processors; the paper's are whole
// numbers.
func (p *printer) times() {
	p.head("TIME (ms)", 1)
	for _, row := range p.ours.Sizes {
		millis := func(t Time) float64 { return t.Millis }
		p.line(row.name(), row.values(1, millis, digits), p.paper.row(row.Size).values(1, millis, whole))
	}
}

// speedups prints those of more than one processor.
func (p *printer) speedups() {
	p.head("SPEED-UP", 2)
	for _, row := range p.ours.Sizes {
		speedup := func(t Time) float64 { return t.Speedup }
		p.line(row.name(), row.values(2, speedup, digits), p.paper.row(row.Size).values(2, speedup, digits))
	}
}

// efficiency prints that of all problems together, as the paper does.
func (p *printer) efficiency() {
	p.head("EFFICIENCY", 2)
	p.line("average", p.ours.over(average), p.paper.over(average))
	p.line("maximum", p.ours.over(slices.Max), p.paper.over(slices.Max))
}

// head prints the numbers of processors from least on.
func (p *printer) head(name string, least int) {
	title := name + " by processors"
	if p.title != "" {
		title = fmt.Sprintf("%-*s | %s", nameWidth+oursWidth*len(p.ours.Processors), title, p.title)
	}
	fmt.Fprintf(p.w, "\n%s\n", title)
	number := func(t Time) float64 { return float64(t.Processors) }
	p.line("", p.ours.any().values(least, number, whole), p.paper.any().values(least, number, whole))
}

// line prints our cells, and those of the paper if there is one.
func (p *printer) line(name string, ours, paper []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%*s", nameWidth, name)
	for _, s := range ours {
		fmt.Fprintf(&b, "%*s", oursWidth, s)
	}
	if p.title != "" {
		b.WriteString(" |")
		for _, s := range paper {
			fmt.Fprintf(&b, "%*s", paperWidth, s)
		}
	}
	fmt.Fprintln(p.w, strings.TrimRight(b.String(), " "))
}

// name is what a problem is called.
func (r Row) name() string { return fmt.Sprintf("%d x %d", r.Size, r.Size) }

// row is that of a problem, or empty.
func (t Times) row(size int) Row {
	for _, row := range t.Sizes {
		if row.Size == size {
			return row
		}
	}
	return Row{}
}

// any is one of the problems, or empty.
func (t Times) any() Row {
	if len(t.Sizes) == 0 {
		return Row{}
	}
	return t.Sizes[0]
}

// values formats those of all numbers of processors. Less than least are left out.
func (r Row) values(least int, value func(Time) float64, format func(float64) string) (cells []string) {
	for _, t := range r.Times {
		if t.Processors < least {
			cells = append(cells, "")
			continue
		}
		cells = append(cells, format(value(t)))
	}
	return cells
}

// over sums up the efficiency of each number of processors but one over all problems.
func (t Times) over(sum func([]float64) float64) (cells []string) {
	for i, n := range t.Processors {
		if n == 1 {
			cells = append(cells, "")
			continue
		}
		var all []float64
		for _, row := range t.Sizes {
			all = append(all, row.Times[i].Efficiency)
		}
		cells = append(cells, digits(sum(all)))
	}
	return cells
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// whole is a whole number.
func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// digits is a number with three significant digits, and no more than five decimals.
func digits(v float64) string {
	const significant, decimals = 3, 5
	before := significant // digits before the point
	if v < math.Pow10(significant) {
		before = int(math.Floor(math.Log10(max(v, math.Pow10(-decimals))))) + 1
	}
	return fmt.Sprintf("%.*f", min(significant-before, decimals), v)
}
