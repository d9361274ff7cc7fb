package choice

import (
	"cmp"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Series is what calls of several lengths take if they are carried out by a choice.
type Series struct {
	By Choice
	// Micros has the time for each length, in microseconds; 0 where it is not known.
	Micros []float64
}

// times are what is known of a collective of so many ranks.
type times struct {
	bytes  []int
	series []Series
}

// Decide returns the spans of a row from the times of its choices, for calls of so many
// bytes each, in increasing order. From one length to the next, a choice remains the best
// unless another one is faster by the factor worth; before the first length, the algorithm
// that can carry out every call is the best. Where the best choice changes, the span ends
// at the length at which both take the same time, on lines through their times. Behind the
// best choice of a span come those that can carry out what it cannot, in the order of their
// times, up to the algorithm that can carry out every call.
func Decide(of coll.Collective, bytes []int, series []Series, worth float64) (spans []Span) {
	e := &times{bytes, series}
	all := algorithms[of][0].Name
	before := slices.IndexFunc(series, func(s Series) bool { return s.By == Choice{Algorithm: all} })
	var best []int // for each length, which of the series
	for i := range bytes {
		m := e.fastest(i)
		if before >= 0 && (m < 0 || e.at(before, i) <= worth*e.at(m, i)) {
			m = before
		}
		best = append(best, m)
		if m >= 0 {
			before = m
		}
	}
	for from := 0; from < len(best); {
		to := from + 1
		for to < len(best) && best[to] == best[from] {
			to++
		}
		if m := best[from]; m >= 0 {
			s := Span{UpTo: math.MaxInt, By: append([]Choice{series[m].By}, e.others(all, m, from, to)...)}
			if to < len(best) {
				s.UpTo = e.crossing(m, best[to], to-1)
			}
			spans = append(spans, s)
		}
		from = to
	}
	return spans
}

// at is the time of a series at a length; infinite where there is none.
func (e *times) at(series, length int) float64 {
	if us := e.series[series].Micros[length]; us > 0 {
		return us
	}
	return math.Inf(1)
}

// fastest is the series with the least time at a length, or −1.
func (e *times) fastest(length int) int {
	least := -1
	for m := range e.series {
		if t := e.at(m, length); !math.IsInf(t, 1) && (least < 0 || t < e.at(least, length)) {
			least = m
		}
	}
	return least
}

// others are the choices behind the best one in a range of lengths.
func (e *times) others(all string, best, from, to int) (list []Choice) {
	if e.series[best].By.Algorithm == all {
		return nil
	}
	type scored struct {
		by    Choice
		score float64
	}
	var ranking []scored
	for m, s := range e.series {
		sum, n := 0.0, 0
		for i := from; i < to; i++ {
			if t := e.at(m, i); !math.IsInf(t, 1) {
				sum, n = sum+math.Log(t/e.at(best, i)), n+1
			}
		}
		if n > 0 {
			ranking = append(ranking, scored{s.By, sum / float64(n)})
		}
	}
	slices.SortStableFunc(ranking, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	seen := []string{e.series[best].By.Algorithm}
	for _, r := range ranking {
		if slices.Contains(seen, r.by.Algorithm) {
			continue
		}
		seen = append(seen, r.by.Algorithm)
		list = append(list, r.by)
		if r.by.Algorithm == all {
			break
		}
	}
	return list
}

// crossing is the length, between that of number i and the next, up to which series a
// is not slower than series b, which is faster from the next one on.
func (e *times) crossing(a, b, i int) int {
	low, high := e.bytes[i], e.bytes[i+1]
	ahead, behind := e.at(b, i)-e.at(a, i), e.at(a, i+1)-e.at(b, i+1)
	end := int(math.Sqrt(float64(max(low, 1)) * float64(high)))
	if !math.IsInf(ahead, 0) && !math.IsInf(behind, 0) && !math.IsNaN(ahead) {
		// One of both may be 0 or less, as what is not worth a change makes none.
		ahead, behind = max(ahead, 0), max(behind, 0)
		if ahead+behind > 0 {
			end = low + int(float64(high-low)*ahead/(ahead+behind))
		}
	}
	if step := max(low/8, 1); end > low { // nobody needs to know it to the byte
		end -= end % step
	}
	return min(max(end, low), high-1)
}
