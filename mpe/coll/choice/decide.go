package choice

import (
	"cmp"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Series holds the measured or computed times that one choice takes for calls of several lengths.
type Series struct {
	Choice Choice
	// Micros holds the time for each length in microseconds, or 0 if it is unknown.
	Micros []float64
}

// measurements holds the known times that a collective takes with one number of ranks.
type measurements struct {
	bytes  []int
	series []Series
}

// DecideSpans computes the spans of a row from the times of its choices for calls of the given lengths, in increasing
// order. Initially, the best choice is the algorithm that supports every call. From one length to the next, the best
// choice changes only if another is faster by the factor worth. The span then ends at the length at which both choices
// take the same time, by linear interpolation. In each span, the best choice is followed by other choices in the order
// of their times, for calls that it does not support, up to the algorithm that supports every call.
func DecideSpans(of coll.Collective, bytes []int, series []Series, worth float64) (spans []Span) {
	e := &measurements{bytes, series}
	all := algorithms[of][0].Name
	before := slices.IndexFunc(series, func(s Series) bool { return s.Choice == Choice{Algorithm: all} })
	var best []int // index of the best series by length
	for i := range bytes {
		m := e.fastest(i)
		if before >= 0 && (m < 0 || e.timeAt(before, i) <= worth*e.timeAt(m, i)) {
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
			s := Span{MaxBytes: math.MaxInt, Choices: append([]Choice{series[m].Choice}, e.runnersUp(all, m, from, to)...)}
			if to < len(best) {
				s.MaxBytes = e.crossover(m, best[to], to-1)
			}
			spans = append(spans, s)
		}
		from = to
	}
	return spans
}

// timeAt returns the time that a series takes at a length, both given by index. It returns infinity if the time is
// unknown.
func (e *measurements) timeAt(series, length int) float64 {
	if us := e.series[series].Micros[length]; us > 0 {
		return us
	}
	return math.Inf(1)
}

// fastest returns the index of the series with the shortest time at a length, or −1 if no time is known.
func (e *measurements) fastest(length int) int {
	least := -1
	for m := range e.series {
		if t := e.timeAt(m, length); !math.IsInf(t, 1) && (least < 0 || t < e.timeAt(least, length)) {
			least = m
		}
	}
	return least
}

// runnersUp returns the choices that rank behind the best one over a range of lengths, fastest first.
func (e *measurements) runnersUp(all string, best, from, to int) (list []Choice) {
	if e.series[best].Choice.Algorithm == all {
		return nil
	}
	type scored struct {
		by    Choice
		score float64
	}
	var ranking []scored
	for m, series := range e.series {
		sum, n := 0.0, 0
		for i := from; i < to; i++ {
			if t := e.timeAt(m, i); !math.IsInf(t, 1) {
				sum, n = sum+math.Log(t/e.timeAt(best, i)), n+1
			}
		}
		if n > 0 {
			ranking = append(ranking, scored{series.Choice, sum / float64(n)})
		}
	}
	slices.SortStableFunc(ranking, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	seen := []string{e.series[best].Choice.Algorithm}
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

// crossover returns the length, between lengths i and i+1, up to which series a is at least as fast as series b, which
// is faster at length i+1.
func (e *measurements) crossover(a, b, i int) int {
	low, high := e.bytes[i], e.bytes[i+1]
	ahead, behind := e.timeAt(b, i)-e.timeAt(a, i), e.timeAt(a, i+1)-e.timeAt(b, i+1)
	end := int(math.Sqrt(float64(max(low, 1)) * float64(high)))
	if !math.IsInf(ahead, 0) && !math.IsInf(behind, 0) && !math.IsNaN(ahead) {
		// Either difference may be 0 or negative, because the choice does not change for a small advantage.
		ahead, behind = max(ahead, 0), max(behind, 0)
		if ahead+behind > 0 {
			end = low + int(float64(high-low)*ahead/(ahead+behind))
		}
	}
	if step := max(low/8, 1); end > low { // a round number is precise enough
		end -= end % step
	}
	return min(max(end, low), high-1)
}
