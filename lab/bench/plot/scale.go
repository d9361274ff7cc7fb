package plot

import "math"

// scale maps values to pixels, by their logarithms.
type scale struct {
	low, high float64 // logarithms
	from, to  float64 // pixels
	zero      bool    // 0 is at from, and low some way off
}

// zeroGap is the part of the axis that 0 takes.
const zeroGap = 0.08

func (s *scale) at(v float64) float64 {
	from := s.from
	if s.zero {
		from += zeroGap * (s.to - s.from)
		if v == 0 {
			return s.from
		}
	}
	return from + (math.Log(v)-s.low)/(s.high-s.low)*(s.to-from)
}

// between returns a value between two others, at a part of the way on the axis.
// Where the first is 0, it is left out.
func (s *scale) between(low, high, part float64) float64 {
	if low == 0 {
		low = math.Exp(s.low)
	}
	return math.Exp(math.Log(low) + part*(math.Log(high)-math.Log(low)))
}

// span widens the scale to hold v.
func (s *scale) span(v float64) {
	switch {
	case v == 0:
		s.zero = true
	case v > 0 && !math.IsInf(v, 0):
		s.low, s.high = min(s.low, math.Log(v)), max(s.high, math.Log(v))
	}
}

func (p *Plot) xScale() scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: left, to: width - right}
	for i := range p.Series {
		for _, q := range p.points(&p.Series[i]) {
			s.span(q.X)
		}
	}
	s.settle(0)
	return s
}

func (p *Plot) yScale() scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: height - bottom, to: top}
	for i := range p.Series {
		for _, q := range p.points(&p.Series[i]) {
			s.span(q.Y)
			if q.whiskered() {
				s.span(q.Low)
				s.span(q.High)
			}
		}
	}
	s.zero = false
	s.settle(0.03)
	return s
}

// settle gives the scale a part of its length as margin, and some length if it
// has none.
func (s *scale) settle(margin float64) {
	if s.low > s.high { // no values
		s.low, s.high = 0, math.Log(10)
	}
	if s.high-s.low < math.Log(1.5) {
		middle := (s.low + s.high) / 2
		s.low, s.high = middle-math.Log(1.5), middle+math.Log(1.5)
	}
	m := margin * (s.high - s.low)
	s.low, s.high = s.low-m, s.high+m
}

// tick is a line of the grid; not all have labels.
type tick struct {
	value float64
	label string
}

// labelledDecades is how many powers of ten an axis has at least if its ticks
// between them are not labelled.
const labelledDecades = 2.2

// labelWidth is the room in pixels that the label of a count takes.
const labelWidth = 48

// ticks returns the lines of the grid.
func (s *scale) ticks(u Unit) []tick {
	var all []tick
	if s.zero {
		all = append(all, tick{0, u.format(0)})
	}
	inside := func(v float64) bool {
		l := math.Log(v)
		return l >= s.low-1e-9 && l <= s.high+1e-9
	}
	if u == BinaryBytes {
		for k := range 31 { // powers of 4, every other one labelled
			if v := math.Ldexp(1, 2*k); inside(v) {
				t := tick{value: v}
				if k%2 == 1 {
					t.label = u.format(v)
				}
				all = append(all, t)
			}
		}
		return all
	}
	few := (s.high-s.low)/math.Ln10 < labelledDecades
	for e := math.Floor(s.low / math.Ln10); e <= s.high/math.Ln10; e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if m > 1 && !few || !inside(v) {
				continue
			}
			all = append(all, tick{v, u.format(v)})
		}
	}
	// The largest of things that are counted is what people look for.
	if last := math.Round(math.Exp(s.high)); u == Count && len(all) > 0 && s.at(last)-s.at(all[len(all)-1].value) > labelWidth {
		all = append(all, tick{last, u.format(last)})
	}
	return all
}
