package attach

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// Whoever waits for an operation reads the daemon's frames meanwhile: he looks
// for them himself, for a while, so that no goroutine has to be woken to tell
// him. While nobody looks, the process's poller is woken by what arrives. Package
// mpe does the same with packets.

const (
	// leastBudget is for how long a caller that waits looks at least. It is
	// about what it takes to be woken.
	leastBudget = 20 * time.Microsecond
	// mostBudget is for how long he looks while answers come quickly: longer
	// than a round trip in a data centre, shorter than a time slice.
	mostBudget = 100 * time.Microsecond
	// maxGap is the longest wait that is remembered, so that a few quick
	// answers after a pause are enough to begin to look longer.
	maxGap = 4 * mostBudget
	// heldUp is how long it takes to look once if other processes want the
	// core: then looking takes from them what they may need to answer. It is
	// less than their time slice and more than a hiccup.
	heldUp = 500 * time.Microsecond
	// afterHeldUp is for how long nobody in the process looks then.
	afterHeldUp = 10 * time.Millisecond
	// recent is for how long after a caller has looked he is expected to be
	// back. To be woken by each of his answers would slow him down. So the
	// poller looks every tendEvery then, which is how long an answer waits at
	// most that comes while he does something else.
	recent    = 2 * tendEvery
	tendEvery = time.Millisecond
)

var (
	// looking counts the callers in the process that look. Each occupies a
	// core, and what they wait for may need one, too.
	looking    atomic.Int32
	mayLook    = int32(runtime.GOMAXPROCS(0)+1) / 2
	notBefore  atomic.Int64 // when looking may pay again, on clock
	clockStart = time.Now()
)

// clock is the time that the budgets are measured by.
func clock() time.Duration { return time.Since(clockStart) }

// budgetFor is for how long to look where it usually takes gap until something
// comes.
func budgetFor(gap time.Duration) time.Duration {
	if 2*gap > mostBudget {
		return leastBudget
	}
	return max(2*gap, leastBudget)
}

// driver decides who reads a client's connection: whoever has the turn, a caller
// that waits or the poller. The poller either watches the descriptor (armed), or
// looks now and then (Tend). It is a poller.Handler.
type driver struct {
	c     *Client
	watch *poller.Watch // nil where a goroutine reads, which has the turn then

	turn  atomic.Bool
	armed atomic.Bool
	// waiting counts the callers that wait and do not look.
	waiting atomic.Int32
	// driven is when a caller last had the turn; gap is the smoothed time that
	// a wait takes. Both are in nanoseconds.
	driven, gap atomic.Int64
}

var _ poller.Handler = (*driver)(nil)

// start has the connection read from now on.
func (d *driver) start(c *Client) {
	d.c = c
	d.driven.Store(int64(-recent))
	w, err := c.link.watch(d)
	if err != nil { // no such thing here, or no memory for it
		d.turn.Store(true)
		go func() {
			_, err := c.pump()
			c.end(err)
		}()
		return
	}
	d.watch = w
	d.rest()
}

func (d *driver) take() bool { return d.turn.CompareAndSwap(false, true) }

// poll handles what has come. The caller has the turn; if it reports false, the
// connection has ended, and nobody gets the turn any longer.
func (d *driver) poll() (frames int, ok bool) {
	frames, err := d.c.pump()
	if errors.Is(err, errNothing) {
		return frames, true
	}
	go d.c.end(err)
	return frames, false
}

// leave gives the turn back. It does not let those down who wait without it.
func (d *driver) leave() {
	d.turn.Store(false)
	if d.waiting.Load() > 0 {
		d.rest()
	}
}

// rest has the poller watch, unless somebody has the turn, who will see to it
// when he leaves.
func (d *driver) rest() {
	if !d.armed.Load() && d.take() {
		d.arm()
	}
}

// arm has the poller watch, and gives the turn back. What has come unseen is
// readable, and told at once.
func (d *driver) arm() {
	if !d.armed.Swap(true) {
		_ = d.watch.Arm() // it cannot fail: the descriptor is open while the turn can be had
	}
	d.turn.Store(false)
}

// Ready implements poller.Handler.
func (d *driver) Ready() time.Duration {
	d.armed.Store(false)
	return d.Tend()
}

// Tend implements poller.Handler.
func (d *driver) Tend() time.Duration {
	if d.armed.Load() {
		return 0
	}
	if !d.take() {
		return tendEvery
	}
	if _, ok := d.poll(); !ok {
		return 0
	}
	if d.waiting.Load() == 0 && time.Duration(d.driven.Load()) > clock()-recent {
		d.leave()
		if d.armed.Load() {
			return 0
		}
		return tendEvery
	}
	d.arm()
	return 0
}

// glance looks once, for a caller that will not wait.
func (d *driver) glance() {
	if !d.take() {
		return
	}
	if _, ok := d.poll(); ok {
		d.driven.Store(int64(clock()))
		d.leave()
	}
}

// await waits for a value on n, or for ctx, whose cause it returns.
func (d *driver) await(ctx context.Context, n <-chan struct{}) error {
	start := clock()
	d.look(ctx, n, start)
	select {
	case <-n:
		d.waited(clock() - start)
		return nil
	default:
	}
	d.waiting.Add(1)
	defer d.waiting.Add(-1)
	d.rest()
	select {
	case <-n:
		d.waited(clock() - start)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits for a value on n.
func (d *driver) wait(n <-chan struct{}) {
	_ = d.await(context.Background(), n) // which never ends
}

// look looks for frames until n has a value, for as long as that is better than
// to be woken.
func (d *driver) look(ctx context.Context, n <-chan struct{}, start time.Duration) {
	if start < time.Duration(notBefore.Load()) || ctx.Err() != nil {
		return
	}
	if looking.Add(1) <= mayLook && d.take() {
		d.lookOn(ctx, n, start)
	}
	looking.Add(-1)
}

func (d *driver) lookOn(ctx context.Context, n <-chan struct{}, start time.Duration) {
	budget := budgetFor(time.Duration(d.gap.Load()))
	now := start
	for last := start; ; last = now {
		frames, ok := d.poll()
		if !ok {
			return
		}
		if len(n) > 0 {
			break
		}
		runtime.Gosched()
		if now = clock(); frames > 0 {
			start = now // whoever is served may soon be served again
		}
		if now-last > heldUp {
			notBefore.Store(int64(now + afterHeldUp))
			break
		}
		if now-start >= budget || ctx.Err() != nil {
			break
		}
	}
	d.driven.Store(int64(now))
	d.leave()
}

// waited remembers how long a wait has taken. Callers that do so at the same time
// may lose the one or the other, which does no harm.
func (d *driver) waited(t time.Duration) {
	gap := d.gap.Load()
	d.gap.Store(gap + (int64(min(t, maxGap))-gap)/4)
}
