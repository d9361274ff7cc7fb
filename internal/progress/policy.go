package progress

import (
	"math"
	"math/bits"
	"time"
)

// A caller that polls uses a core. One that sleeps continues later, by what a wake-up costs.
// latencyPrice is how many microseconds of a core a microsecond of latency is worth: a caller
// sleeps where that makes its wait longer by less than 1/32.
const latencyPrice = 32

// price is what a wait that sleeps costs, as time of a core.
func price(wakeup time.Duration) time.Duration { return latencyPrice * wakeup }

// Waits are counted in classes by their length: class 0 has those below firstClass, and the next
// ones are half a power of two wide.
const (
	firstClass = time.Microsecond
	classes    = 36 // the last one has those of 131 ms or more
	// memory is how much a count is worth after another wait: about the last 16 count.
	memory = 15. / 16
	// chooseEvery is after how many waits that were short enough the budget is chosen again, as that takes 0.1 µs.
	chooseEvery = 8
)

// ends has what is longer than the waits of each class. The last one has no end, and its value is not used.
var ends = func() (ends [classes]time.Duration) {
	for c := range ends {
		ends[c] = time.Duration(float64(firstClass) * math.Pow(2, float64(c)/2))
	}
	return ends
}()

// classOf returns the class of waits that take d.
func classOf(d time.Duration) int {
	if d < firstClass {
		return 0
	}
	octave := bits.Len64(uint64(d/firstClass)) - 1
	c := 1 + 2*octave
	if c < classes && d >= ends[c] {
		c++
	}
	return min(c, classes-1)
}

// policy chooses for how long to poll before sleeping, by how long the last waits have taken and
// by what a wake-up costs. It is pure; its zero value has seen no wait.
//
// A wait costs what is polled, and price more if it then sleeps. The policy chooses the budget, up to
// price, that would have cost the least for the last waits. To poll for price and then sleep never costs
// more than twice the best choice for a wait: that is the budget before the first one.
//
// The length of a wait is known also if it has slept. So two sides that both sleep learn what polling would have
// saved, and begin to poll again, unless their wake-ups are less than 1/32 of what a message takes.
type policy struct {
	counts [classes]float64
	recent int // waits since the budget was chosen
	budget time.Duration
}

// waited notes how long a wait has taken, or would have taken a caller that polls. It reports whether
// it is time to choose the budget again.
func (p *policy) waited(d time.Duration) bool {
	p.counts[classOf(d)]++
	p.recent++
	return d > p.budget || p.recent >= chooseEvery
}

// choose returns for how long to poll next. Sleep is the price of sleeping.
func (p *policy) choose(sleep time.Duration) time.Duration {
	longer := 0. // the waits that are longer than what is considered
	for _, n := range p.counts {
		longer += n
	}
	least := math.Inf(1)
	polled := 0. // for waits that are not longer, in nanoseconds
	for c, n := range p.counts {
		budget := min(ends[c], sleep)
		polled += n * float64(ends[c])
		longer -= n
		if cost := polled + longer*float64(budget+sleep); cost < least {
			least, p.budget = cost, budget
		}
		if budget == sleep {
			break
		}
	}
	keep := math.Pow(memory, float64(p.recent))
	for c := range p.counts {
		p.counts[c] *= keep
	}
	p.recent = 0
	return p.budget
}
