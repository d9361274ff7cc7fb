package network

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// core serves the ranks that share it round-robin. A rank that waits polls once and yields, which takes a time slice. One that has
// work keeps the core until that is done, and then a time slice. No event happens while all of them wait.
type core struct {
	clock *sim.Clock
	ranks []*rank
	slice sim.Cycle
	// work has a bit for each rank with work.
	work []uint64
	// serves: the rank with the number at has the core, and work. Otherwise its work has ended at since, and from then on it, and
	// those after it, have had a time slice each.
	serves bool
	at     int
	since  sim.Cycle
	// next is the first of the ranks with work to get the core, or negative, and when that is. Then arrives is called.
	next    int
	when    sim.Cycle
	arrives func()
}

// init sets the core up at the time of the clock, without ranks.
func (c *core) init(clock *sim.Clock, slice sim.Cycle) {
	if c.arrives == nil {
		c.arrives = c.arrive
	}
	*c = core{clock: clock, ranks: c.ranks[:0], work: c.work[:0], slice: slice, since: clock.Now(), next: -1, arrives: c.arrives}
}

// add adds a rank to those that share the core.
func (c *core) add(r *rank) {
	r.core, r.place = c, len(c.ranks)
	c.ranks = append(c.ranks, r)
	if len(c.ranks) > 64*len(c.work) {
		c.work = append(c.work, 0)
	}
}

// ready notes that a rank has work.
func (c *core) ready(r *rank) {
	c.work[r.place/64] |= 1 << (r.place % 64)
	if c.serves {
		return
	}
	now := c.clock.Now()
	passed := 1 // time slices that have begun, at least
	if c.slice > 0 {
		passed = max(1, int((now-c.since+c.slice-1)/c.slice))
	}
	slices := passed + c.distance(c.at+passed, r.place)
	if when := max(now, c.since+sim.Cycle(slices)*c.slice); c.next < 0 || when < c.when {
		c.goTo(r.place, when)
	}
}

// distance returns how many ranks there are from one on, which may be counted round and round, to another.
func (c *core) distance(from, to int) int {
	n := len(c.ranks)
	return ((to-from)%n + n) % n
}

// goTo has the core come to a rank at a time.
func (c *core) goTo(place int, when sim.Cycle) {
	c.next, c.when = place, when
	c.clock.After(when-c.clock.Now(), c.arrives)
}

// arrive begins to serve the next rank, unless one before it has got work since that was scheduled.
func (c *core) arrive() {
	if c.serves || c.next < 0 || c.when != c.clock.Now() {
		return
	}
	c.serves, c.at, c.next = true, c.next, -1
	c.ranks[c.at].run()
}

// yield has the rank that is served give the core away, as it has no more work.
func (c *core) yield() {
	c.work[c.at/64] &^= 1 << (c.at % 64)
	c.serves, c.since = false, c.clock.Now()
	if next := c.following(); next >= 0 {
		c.goTo(next, c.since+sim.Cycle(1+c.distance(c.at+1, next))*c.slice)
	}
}

// following returns the first rank with work after the one that has been served, or −1.
func (c *core) following() int {
	first := c.at / 64
	before := uint64(1)<<(c.at%64) - 1
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
