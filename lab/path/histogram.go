package path

// histogramCells is the number of equal ranges into which a histogram divides its values.
const histogramCells = 2000

// histogram counts values from 0 to a bound. It keeps their sum, and their distribution with a resolution of 1/2000 of
// the bound. In the distribution, a value above the bound counts as the bound.
type histogram struct {
	bound      int
	cells      []uint64
	count, sum uint64
}

func newHistogram(bound int) histogram {
	return histogram{bound: max(bound, 1), cells: make([]uint64, histogramCells+1)}
}

// add adds a value. A negative value counts as 0.
func (h *histogram) add(value int) {
	value = max(value, 0)
	h.count++
	h.sum += uint64(value)
	h.cells[min(value, h.bound)*histogramCells/h.bound]++
}

// mean returns the mean of all values, or 0 if there are no values.
func (h *histogram) mean() float64 {
	if h.count == 0 {
		return 0
	}
	return float64(h.sum) / float64(h.count)
}

// quantile returns the value below which a share of all values lies, or 0 if there are no values. share is from 0 to 1.
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
