package path

// histogramCells is into how many equal ranges a histogram divides its values.
const histogramCells = 2000

// histogram counts values from 0 to a bound. It keeps their sum, and their distribution
// to one part in 2000 of the bound. Greater values count as the bound in the latter.
type histogram struct {
	bound      int
	cells      []uint64
	count, sum uint64
}

func newHistogram(bound int) histogram {
	return histogram{bound: max(bound, 1), cells: make([]uint64, histogramCells+1)}
}

// add counts a value; a negative one counts as 0.
func (h *histogram) add(value int) {
	value = max(value, 0)
	h.count++
	h.sum += uint64(value)
	h.cells[min(value, h.bound)*histogramCells/h.bound]++
}

// mean returns the mean of all values, 0 without any.
func (h *histogram) mean() float64 {
	if h.count == 0 {
		return 0
	}
	return float64(h.sum) / float64(h.count)
}

// quantile returns the value below which a share of all values is, from 0 to 1; 0 without
// any.
func (h *histogram) quantile(share float64) float64 {
	if h.count == 0 {
		return 0
	}
	rest := min(uint64(share*float64(h.count)), h.count-1)
	cell := 0
	for ; rest >= h.cells[cell]; cell++ {
		rest -= h.cells[cell]
	}
	return float64(cell) * float64(h.bound) / histogramCells
}
