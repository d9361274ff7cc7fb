package predict

import (
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/lab/sim/network"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// NearRatio determines which choices count as good: those whose measured time is at most this factor times the fastest
// measured time.
const NearRatio = 1.25

// Comparison compares the model with the measurements made for one class and number of ranks.
type Comparison struct {
	Class choice.Class `json:"class"`
	Ranks int          `json:"ranks"`
	// Fitted reports whether the model was fitted to these measurements.
	Fitted bool `json:"fitted"`
	// Cases is the number of pairs of a collective and a length. NearBest counts the cases in which the choice that is
	// fastest in the model took at most Near times as long as the choice measured to be fastest. Worst is the largest
	// of these ratios.
	Cases    int     `json:"cases"`
	NearBest int     `json:"near_best"`
	Worst    float64 `json:"worst"`
	// Low, Median and High are the 10th, 50th and 90th percentiles of the ratio of predicted to measured times.
	Low    float64 `json:"p10"`
	Median float64 `json:"p50"`
	High   float64 `json:"p90"`

	ratios []float64
}

// ComparisonReport holds the comparison of the model with all measurements.
type ComparisonReport struct {
	Parameters  []ClassParameters `json:"parameters"`
	Comparisons []Comparison      `json:"comparisons"`
	Total       Comparison        `json:"total"`
	Cases       []ClassCases      `json:"cases"`
}

// ClassParameters holds the model's parameters, in nanoseconds, that were fitted to the measurements of a class.
// Deviation is copied from the Fit.
type ClassParameters struct {
	Class     choice.Class `json:"class"`
	Deviation float64      `json:"deviation"`
	Host      network.Host `json:"host"`
	Link      network.Link `json:"link"`
}

// ClassCases holds the cases measured for a class.
type ClassCases struct {
	Class choice.Class `json:"class"`
	Cases []Case       `json:"cases"`
}

// Compare compares each fit with the calls to which it was fitted, and with calls of more ranks.
func Compare(fits []*Fit) ComparisonReport {
	var all ComparisonReport
	for _, fit := range fits {
		link := fit.Parameters.Network
		if sharesMemory(fit.Class) {
			link = fit.Parameters.Memory
		}
		all.Parameters = append(all.Parameters, ClassParameters{fit.Class, fit.Deviation, fit.Parameters.Host, link})
		all.Cases = append(all.Cases, ClassCases{fit.Class, fit.Cases})
		for i := range fit.Cases {
			c := &fit.Cases[i]
			k := slices.IndexFunc(all.Comparisons,
				func(o Comparison) bool { return o.Class == fit.Class && o.Ranks == c.Ranks })
			if k < 0 {
				k = len(all.Comparisons)
				all.Comparisons = append(all.Comparisons,
					Comparison{Class: fit.Class, Ranks: c.Ranks, Fitted: c.Ranks <= fit.FittedRanks})
			}
			all.Comparisons[k].addCase(c)
			all.Total.addCase(c)
		}
	}
	for i := range all.Comparisons {
		all.Comparisons[i].computeQuantiles()
	}
	all.Total.computeQuantiles()
	return all
}

func (o *Comparison) addCase(c *Case) {
	least := slices.Min(c.Measured)
	ratio := c.Measured[slices.Index(c.Predicted, slices.Min(c.Predicted))] / least
	o.Cases++
	if ratio <= NearRatio {
		o.NearBest++
	}
	o.Worst = max(o.Worst, ratio)
	for k := range c.By {
		o.ratios = append(o.ratios, c.Predicted[k]/c.Measured[k])
	}
}

func (o *Comparison) computeQuantiles() {
	if len(o.ratios) == 0 {
		return
	}
	slices.Sort(o.ratios)
	at := func(share float64) float64 {
		return o.ratios[min(int(math.Ceil(share*float64(len(o.ratios)))), len(o.ratios))-1]
	}
	o.Low, o.Median, o.High = at(0.1), at(0.5), at(0.9)
}
