package progress

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/host.golden")

// host simulates a host with two cores. Ranks on one core exchange messages with ranks on the other core, and
// compute for a while before they answer. A core runs one rank at a time. If it has several ranks, each of them
// gets a time slice, and a rank that is woken up runs immediately.
type host struct {
	perCore int
	wakeup  time.Duration
	compute time.Duration // time for which a rank computes before each answer
	stolen  bool          // whether a neighbor takes a fifth of the cores, for 1 to 20 ms at a time
	budget  func(p *policy, last time.Duration) time.Duration
	rng     *rand.Rand

	now   time.Duration
	cores [2]core
	ranks []*simRank
	times []time.Duration // durations of messages, from the send until the receiver continues
	slept int
	spent time.Duration // time spent polling
}

const (
	slice    = 3 * time.Millisecond
	transit  = 2 * time.Microsecond
	onePoll  = 500 * time.Nanosecond
	switched = 1500 * time.Nanosecond // time to switch to another rank
	far      = time.Duration(1 << 62)
)

type core struct {
	queue   []*simRank // the first rank is running
	since   time.Duration
	taken   bool // taken by the neighbor
	changes time.Duration
}

type simRank struct {
	core, peer int
	policy     policy
	budget     time.Duration

	left    time.Duration // remaining time to compute
	began   time.Duration // start of the current wait
	asleep  bool
	wakes   time.Duration // time at which the rank will run if it is being woken up
	arrives time.Duration // time at which a message arrives
	sent    time.Duration // time at which that message was sent
	napped  bool          // whether the rank has slept in this wait
}

func (h *host) run(messages int) {
	n := 2 * h.perCore
	for i := range n {
		h.ranks = append(h.ranks, &simRank{core: i % 2, peer: i ^ 1, wakes: far, arrives: far})
	}
	for i := range h.cores {
		h.cores[i].changes = far
		if h.stolen {
			h.cores[i].changes = time.Duration(h.rng.Int64N(int64(10 * time.Millisecond)))
		}
	}
	for i, r := range h.ranks {
		// All ranks have got used to long waits and sleep.
		for range 20 {
			r.budget = h.budget(&r.policy, 100*time.Millisecond)
		}
		if i%2 == 0 {
			r.left = h.compute
		}
		h.enqueue(r)
	}
	for len(h.times) < messages {
		h.step()
	}
}

func (h *host) enqueue(r *simRank) {
	c := &h.cores[r.core]
	c.queue = append(c.queue, r)
}

// step advances the simulation to the next event.
func (h *host) step() {
	next := far
	for i := range h.cores {
		next = min(next, h.cores[i].changes, h.due(&h.cores[i]))
	}
	for _, r := range h.ranks {
		next = min(next, r.wakes)
		if r.asleep && r.wakes == far {
			next = min(next, max(r.arrives, h.now))
		}
	}
	h.advance(next - h.now)
	for i := range h.cores {
		h.steal(&h.cores[i])
	}
	for _, r := range h.ranks {
		h.wake(r)
	}
	for i := range h.cores {
		h.act(&h.cores[i])
	}
}

// due returns the time at which the rank that runs on a core acts next.
func (h *host) due(c *core) time.Duration {
	if c.taken || len(c.queue) == 0 {
		return far
	}
	r := c.queue[0]
	end := far
	if len(c.queue) > 1 {
		end = c.since + slice
	}
	if r.left > 0 {
		return min(end, h.now+r.left)
	}
	if h.yields() && len(c.queue) > 1 {
		end = h.now + onePoll + switched
	}
	return min(end, max(r.arrives, h.now+onePoll), max(r.began+r.budget, h.now+onePoll))
}

// yields reports whether ranks yield after each poll.
func (h *host) yields() bool { return h.perCore > 1 }

// advance advances the time.
func (h *host) advance(d time.Duration) {
	h.now += d
	for i := range h.cores {
		c := &h.cores[i]
		if c.taken || len(c.queue) == 0 {
			continue
		}
		if r := c.queue[0]; r.left > 0 {
			r.left = max(r.left-d, 0)
			if r.left == 0 {
				h.send(r)
			}
		} else {
			h.spent += d
		}
	}
}

// send sends an answer and starts to wait.
func (h *host) send(r *simRank) {
	p := h.ranks[r.peer]
	p.arrives, p.sent = h.now+transit, h.now
	r.began, r.napped = h.now, false
}

func (h *host) steal(c *core) {
	if h.now < c.changes {
		return
	}
	burst := time.Millisecond + time.Duration(h.rng.Int64N(int64(19*time.Millisecond)))
	if c.taken = !c.taken; !c.taken {
		burst *= 4
	}
	c.changes = h.now + burst
	c.since = h.now
}

func (h *host) wake(r *simRank) {
	if r.asleep && r.wakes == far && r.arrives <= h.now {
		r.wakes = h.now + h.wakeup
	}
	if r.wakes <= h.now {
		r.asleep, r.wakes = false, far
		c := &h.cores[r.core]
		c.queue = slices.Insert(c.queue, 0, r)
		c.since = h.now
	}
}

// act makes the rank that runs on a core poll, yield or sleep.
func (h *host) act(c *core) {
	if c.taken || len(c.queue) == 0 {
		return
	}
	r := c.queue[0]
	switch {
	case r.left > 0:
	case r.arrives <= h.now:
		wait := h.now - r.began
		if r.napped {
			wait = max(wait-h.wakeup, 0)
		}
		r.budget = h.budget(&r.policy, wait)
		h.times = append(h.times, h.now-r.sent)
		r.arrives = far
		if r.left = h.compute; r.left == 0 {
			h.send(r)
		}
		return
	case h.now >= r.began+r.budget:
		r.asleep, r.napped = true, true
		h.slept++
		c.queue, c.since = c.queue[1:], h.now
		return
	case h.yields() && len(c.queue) > 1:
		c.queue, c.since = append(c.queue[1:], r), h.now
		return
	}
	if len(c.queue) > 1 && h.now-c.since >= slice {
		c.queue, c.since = append(c.queue[1:], r), h.now
	}
}

// TestHost compares the policy with fixed budgets.
func TestHost(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprint(&out, `Time of a message in µs (median), share of the waits that sleep, polling in µs per message
                                                 policy          sleep at once      always poll
ranks/core  stolen  wake-up  compute     time slept polled     time slept polled     time slept polled
`)
	for _, perCore := range []int{1, 2, 8} {
		for _, stolen := range []bool{false, true} {
			for _, wakeup := range []time.Duration{2 * time.Microsecond, 10 * time.Microsecond, 50 * time.Microsecond,
				200 * time.Microsecond} {
				for _, compute := range []time.Duration{time.Microsecond, 30 * time.Microsecond, 300 * time.Microsecond,
					3 * time.Millisecond, 10 * time.Millisecond} {
					h := host{perCore: perCore, stolen: stolen, wakeup: wakeup, compute: compute}
					compareHost(t, &out, h)
				}
			}
		}
	}
	const name = "testdata/host.golden"
	if *update {
		if err := os.WriteFile(name, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%s differs; write it with -update and review the changes:\n%s", name, out.Bytes())
	}
}

func compareHost(t *testing.T, out *bytes.Buffer, setup host) {
	t.Helper()
	messages := 4000 / setup.perCore // more ranks take longer to simulate
	fmt.Fprintf(out, "%10d  %6v  %7v  %7v ", setup.perCore, setup.stolen, setup.wakeup, setup.compute)
	var median [3]time.Duration
	for i, budget := range []func(*policy, time.Duration) time.Duration{
		func(p *policy, last time.Duration) time.Duration {
			if setup.perCore > 1 {
				return oversubscribedBudget
			}
			if p.recordWait(last) {
				return p.choose(sleepCost(setup.wakeup))
			}
			return p.budget
		},
		func(*policy, time.Duration) time.Duration { return 0 },
		func(*policy, time.Duration) time.Duration { return time.Hour },
	} {
		if i == 2 && setup.perCore > 1 {
			break // ranks that share a core cannot poll endlessly
		}
		h := setup
		h.budget, h.rng = budget, rand.New(rand.NewPCG(3, 4))
		h.run(messages)
		slices.Sort(h.times)
		median[i] = h.times[len(h.times)/2]
		fmt.Fprintf(out, " %8.1f  %.2f %6.1f", float64(median[i])/1e3, float64(h.slept)/float64(len(h.times)),
			float64(h.spent)/1e3/float64(len(h.times)))
	}
	fmt.Fprintln(out)
	// A message is never slower by more than the limit, which is 1/32 of the wait on both sides.
	if setup.perCore == 1 && median[0] > median[2]+2*(setup.compute+median[2])/latencyPrice*2 {
		t.Errorf("%d ranks a core, a wake-up costs %v, compute %v, stolen %v: %v, always polling %v", setup.perCore,
			setup.wakeup, setup.compute, setup.stolen, median[0], median[2])
	}
}
