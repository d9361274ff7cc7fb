package choice

import (
	"cmp"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// worth is what another choice must be faster by to be taken: where one measures twice,
// differences below come and go.
const worth = 1.1

// Decide makes the decisions of an entry from its medians. From one length to the next,
// a choice stays the best unless another is faster by 10%; the algorithm that can do all
// calls is the best before the first length. Where it changes, the range
// ends at the length at which both take the same time, on lines through their medians.
// Behind the best of a range come those that can do what it cannot, in the order of
// their times, up to the one that can do all.
func (e *Entry) Decide() {
	e.Choose = nil
	all := algorithms[coll.Collective(e.Collective)][0].Name
	before := slices.IndexFunc(e.Medians, func(s Series) bool { return s.By == Choice{Algorithm: all} })
	var best []int // for each length, which of Medians
	for i := range e.Bytes {
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
			d := Decision{By: append([]Choice{e.Medians[m].By}, e.others(m, from, to)...)}
			if to < len(best) {
				end := strictyaml.Size(e.crossing(m, best[to], to-1))
				d.UpTo = &end
			}
			e.Choose = append(e.Choose, d)
		}
		from = to
	}
}

// at is the median of a series at a length; infinite where there is none.
func (e *Entry) at(series, length int) float64 {
	if us := e.Medians[series].Micros[length]; us > 0 {
		return us
	}
	return math.Inf(1)
}

// fastest is the series with the least median at a length, or −1.
func (e *Entry) fastest(length int) int {
	least := -1
	for m := range e.Medians {
		if t := e.at(m, length); !math.IsInf(t, 1) && (least < 0 || t < e.at(least, length)) {
			least = m
		}
	}
	return least
}

// others are the choices behind the best one in a range of lengths.
func (e *Entry) others(best, from, to int) (list []Choice) {
	all := algorithms[coll.Collective(e.Collective)][0].Name
	if e.Medians[best].By.Algorithm == all {
		return nil
	}
	type scored struct {
		by    Choice
		score float64
	}
	var ranking []scored
	for m, s := range e.Medians {
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
	seen := []string{e.Medians[best].By.Algorithm}
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
func (e *Entry) crossing(a, b, i int) int {
	low, high := e.Bytes[i], e.Bytes[i+1]
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
