package network

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// core models a processor core that serves several ranks in round-robin order. A waiting rank polls once and yields,
// which takes a time slice. A rank with work keeps the core until the work is done, and then for one more time slice.
// While all ranks are waiting, no event is simulated.
type core struct {
	clock *sim.Clock
	ranks []*rank
	slice sim.Cycle
	// work is a bitmap of the ranks that have work.
	work []uint64
	// isServing reports whether the core is executing work of rank current. If not, that work ended at servedUntil, and
	// since then rank current and the ranks after it have used one time slice each.
	isServing   bool
	current     int
	servedUntil sim.Cycle
	// next is the rank with work that gets the core next, or −1 if no rank has work. It gets the core at the time when,
	// at which the callback arriveFunc is called.
	next       int
	when       sim.Cycle
	arriveFunc func()
}

// init resets the core, which then has no ranks and starts at the clock's current time.
func (c *core) init(clock *sim.Clock, slice sim.Cycle) {
	if c.arriveFunc == nil {
		c.arriveFunc = c.arrive
	}
	*c = core{clock: clock, ranks: c.ranks[:0], work: c.work[:0], slice: slice, servedUntil: clock.Now(), next: -1,
		arriveFunc: c.arriveFunc}
}

// add assigns a rank to the core.
func (c *core) add(r *rank) {
	r.core, r.corePos = c, len(c.ranks)
	c.ranks = append(c.ranks, r)
	if len(c.ranks) > 64*len(c.work) {
		c.work = append(c.work, 0)
	}
}

// markReady records that a rank has work.
func (c *core) markReady(r *rank) {
	c.work[r.corePos/64] |= 1 << (r.corePos % 64)
	if c.isServing {
		return
	}
	now := c.clock.Now()
	passed := 1 // number of time slices that have begun, at least 1
	if c.slice > 0 {
		passed = max(1, int((now-c.servedUntil+c.slice-1)/c.slice))
	}
	slices := passed + c.distance(c.current+passed, r.corePos)
	if when := max(now, c.servedUntil+sim.Cycle(slices)*c.slice); c.next < 0 || when < c.when {
		c.scheduleRank(r.corePos, when)
	}
}

// distance returns how many round-robin positions one rank is after another.
func (c *core) distance(from, to int) int {
	n := len(c.ranks)
	return ((to-from)%n + n) % n
}

// scheduleRank schedules the time at which a rank gets the core.
func (c *core) scheduleRank(place int, when sim.Cycle) {
	c.next, c.when = place, when
	c.clock.After(when-c.clock.Now(), c.arriveFunc)
}

// arrive starts to serve the next rank. It does nothing if the core has been rescheduled to an earlier time.
func (c *core) arrive() {
	if c.isServing || c.next < 0 || c.when != c.clock.Now() {
		return
	}
	c.isServing, c.current, c.next = true, c.next, -1
	c.ranks[c.current].run()
}

// yield releases the core after the current rank has done all its work.
func (c *core) yield() {
	c.work[c.current/64] &^= 1 << (c.current % 64)
	c.isServing, c.servedUntil = false, c.clock.Now()
	if next := c.nextWithWork(); next >= 0 {
		c.scheduleRank(next, c.servedUntil+sim.Cycle(1+c.distance(c.current+1, next))*c.slice)
	}
}

// nextWithWork returns the next rank with work after the rank just served, or −1.
func (c *core) nextWithWork() int {
	first := c.current / 64
	before := uint64(1)<<(c.current%64) - 1
	for i := range len(c.work) + 1 {
		k := (first + i) % len(c.work)
		w := c.work[k]
		if i == 0 {
			w &^= before
		}
		if w != 0 {
			return 64*k + bits.TrailingZeros64(w)
		}
	}
	return -1
}
