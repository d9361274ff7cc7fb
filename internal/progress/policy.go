package progress

import (
	"math"
	"math/bits"
	"time"
)

// latencyPrice states how many microseconds of core time a microsecond of latency is worth. A caller that polls uses a
// core; a caller that sleeps continues later, by the cost of a wake-up. At this price, a caller sleeps only if that
// makes its wait longer by less than 1/32.
const latencyPrice = 32

// sleepCost returns the cost of sleeping, expressed as core time.
func sleepCost(wakeup time.Duration) time.Duration { return latencyPrice * wakeup }

// Waits are counted in classes by length. Class 0 is for waits shorter than firstClass; each further class is
// half a power of two wide.
const (
	firstClass = time.Microsecond
	numClasses = 36 // the last class is for 131 ms and more
	// decay is the factor by which each wait reduces the weight of all earlier ones, so that about the last 16
	// waits matter.
	decay = 15. / 16
	// chooseEvery is the number of waits within the budget after which a new budget is chosen. It is not 1
	// because choosing takes 0.1 µs.
	chooseEvery = 8
)

// classLimits contains the upper limit of each class. The last class is unlimited, and its value unused.
var classLimits = func() (ends [numClasses]time.Duration) {
	for c := range ends {
		ends[c] = time.Duration(float64(firstClass) * math.Pow(2, float64(c)/2))
	}
	return ends
}()

// classOf returns the class in which a wait of length d is counted.
func classOf(d time.Duration) int {
	if d < firstClass {
		return 0
	}
	octave := bits.Len64(uint64(d/firstClass)) - 1
	c := 1 + 2*octave
	if c < numClasses && d >= classLimits[c] {
		c++
	}
	return min(c, numClasses-1)
}

// policy chooses how long to poll before sleeping, based on the lengths of recent waits and the cost of a
// wake-up. It is pure. The zero value has not seen any wait.
//
// A wait costs the time polled, plus price if the caller then sleeps. policy chooses the budget, up to price,
// that would have cost the least for recent waits. The budget before the first wait is price: polling for price
// and then sleeping never costs more than twice the best choice for a wait.
//
// The length of a wait is known even if the caller slept. If both sides sleep, they therefore learn how much
// time polling would have saved, and start to poll again, unless their wake-ups cost less than 1/32 of a
// message's time.
type policy struct {
	counts [numClasses]float64
	recent int // number of waits since the budget was chosen
	budget time.Duration
}

// recordWait records how long a caller waited, or how long it would have waited if it had polled. It reports whether a
// new spin budget should be chosen.
func (p *policy) recordWait(d time.Duration) bool {
	p.counts[classOf(d)]++
	p.recent++
	return d > p.budget || p.recent >= chooseEvery
}

// choose returns the time for which callers should poll from now on. sleep is the price of sleeping, expressed as core
// time.
func (p *policy) choose(sleep time.Duration) time.Duration {
	longer := 0. // waits longer than the budget under consideration
	for _, n := range p.counts {
		longer += n
	}
	least := math.Inf(1)
	polled := 0. // time polled in all other waits, in nanoseconds
	for c, n := range p.counts {
		budget := min(classLimits[c], sleep)
		polled += n * float64(classLimits[c])
		longer -= n
		if cost := polled + longer*float64(budget+sleep); cost < least {
			least, p.budget = cost, budget
		}
		if budget == sleep {
			break
		}
	}
	keep := math.Pow(decay, float64(p.recent))
	for c := range p.counts {
		p.counts[c] *= keep
	}
	p.recent = 0
	return p.budget
}
