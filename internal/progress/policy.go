package progress

import (
	"math"
	"math/bits"
	"time"
)

// latencyPrice is the price of a microsecond of latency, in microseconds of a core. A caller that polls uses a core.
// One that sleeps continues later, by the cost of a wake-up. A caller sleeps if this extends its wait by less than
// 1/32.
const latencyPrice = 32

// price returns the cost of sleeping, as time of a core.
func price(wakeup time.Duration) time.Duration { return latencyPrice * wakeup }

// Waits are counted in classes by length: class 0 is below firstClass, and the other classes are half a power of two
// wide.
const (
	firstClass = time.Microsecond
	classes    = 36 // the last one is 131 ms or more
	// memory is the factor by which another wait reduces the weight of a count: about the last 16 waits matter.
	memory = 15. / 16
	// chooseEvery is the number of waits within budget after which the budget is chosen again, because choosing takes
	// 0.1 µs.
	chooseEvery = 8
)

// ends has the upper limit of each class. The last class is unlimited, and its value is not used.
var ends = func() (ends [classes]time.Duration) {
	for c := range ends {
		ends[c] = time.Duration(float64(firstClass) * math.Pow(2, float64(c)/2))
	}
	return ends
}()

// classOf returns the class of waits of length d.
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

// policy chooses how long to poll before sleeping, from the lengths of recent waits and the cost of a wake-up. It is
// pure; its zero value has seen no wait.
//
// A wait costs the time polled, and price more if it then sleeps. The policy chooses the budget, up to price, that
// would have cost the least for recent waits. Polling for price and then sleeping never costs more than twice the
// best choice for a wait, so that is the budget before the first wait.
//
// The length of a wait is known even if the caller slept. So if both sides sleep, they learn how much polling would
// have saved, and begin to poll again, unless their wake-ups cost less than 1/32 of a message's time.
type policy struct {
	counts [classes]float64
	recent int // waits since the budget was chosen
	budget time.Duration
}

// waited records how long a wait took, or would have taken a polling caller. It reports whether the budget should be
// chosen again.
func (p *policy) waited(d time.Duration) bool {
	p.counts[classOf(d)]++
	p.recent++
	return d > p.budget || p.recent >= chooseEvery
}

// choose returns how long to poll from now on. sleep is the price of sleeping.
func (p *policy) choose(sleep time.Duration) time.Duration {
	longer := 0. // waits longer than the budget considered
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
