package attach

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// A session whose frames go through rings has no dedicated goroutines for reading and for operations that end. It is
// polled: its ring, its rank, and the ended operations. Any caller in the process that polls (progress.Shared) does
// so, such as another program's session or a kernel that waits for a message. So one goroutine of the daemon carries
// a message from one program to another, without a context switch. The session's own goroutine polls only while no
// other caller does, and sleeps when nothing arrives; then the other callers do not poll the session, either.

// pauseTime is how long the session's goroutine sleeps while other callers poll.
const pauseTime = time.Millisecond

// processorVisits is the number of visits after which the daemon publishes the processor on which it polls: reading
// its number costs a system call.
const processorVisits = 64

// maxPumped limits the number of a program's frames handled in one poll.
const maxPumped = 64

// polling is the state of a polled session.
type polling struct {
	s     *session
	rings wire.Rings
	dev   pollDevice
	watch progress.Watch
	spin  progress.SpinPolicy

	// owned is set while a goroutine polls, and finds counts polls by callers that found something. The owner sets
	// over, and err to the reason, when the session ends.
	owned atomic.Bool
	finds atomic.Uint32
	over  bool
	err   error
	// visits counts the visits of callers. It belongs to the owner.
	visits uint
	// pumped is set if the last poll handled frames and did not poll the rank.
	pumped bool

	// asleep is set while the session is not polled. awaken resets it.
	asleep atomic.Bool
	wake   chan struct{} // signals the session's goroutine
}

// pollDevice is a device on which any goroutine can make progress.
type pollDevice interface {
	// PollOnce makes progress once. Sleep makes progress until c has a value, for a caller that has polled for the
	// time polled.
	PollOnce()
	Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error
}

func newPolling(r wire.Rings, s *session, oversubscribed bool) (*polling, error) {
	p := &polling{s: s, rings: r, wake: make(chan struct{}, 1)}
	p.spin.Init(oversubscribed)
	p.dev, _ = s.dev.(pollDevice)
	var err error
	p.watch, err = progress.NewWatch(r.Descriptor(), func(bool) time.Duration { p.awaken(); return 0 })
	return p, err
}

// awaken resumes polling: by callers that poll anyway, or by the session's goroutine.
func (p *polling) awaken() {
	p.asleep.Store(false)
	wire.Notify(p.wake)
}

// run polls the session until it ends, and returns the reason. After run, nothing polls the session.
func (p *polling) run() error {
	progress.Share(p)
	for {
		finds := p.finds.Load()
		polled, ok := p.spin.PollShared(progress.Clock, p.wake)
		woken := false
		select {
		case <-p.wake:
			woken = true
		default:
		}
		if p.owned.CompareAndSwap(false, true) {
			if p.over {
				break // leave it owned
			}
			p.owned.Store(false)
		}
		if !ok {
			time.Sleep(pauseTime)
			woken = p.finds.Load() != finds
		}
		if !woken {
			p.sleep(polled)
		}
	}
	progress.Unshare(p)
	p.watch.Remove()
	return p.err
}

// Visit implements progress.Shared.
func (p *polling) Visit() bool {
	if p.asleep.Load() || p.owned.Load() || !p.owned.CompareAndSwap(false, true) {
		return false
	}
	found := !p.over && p.poll()
	if found {
		p.finds.Add(1)
	}
	if p.visits++; p.visits%processorVisits == 0 {
		p.rings.TellProcessor()
	}
	p.owned.Store(false)
	return found
}

// poll makes progress on the rank, answers ended operations and handles frames. It reports whether there was anything
// to do. The caller must be the owner.
func (p *polling) poll() bool {
	n, err := p.pump()
	// A program that has sent frames waits for their effect, and the rank's sockets are usually empty, so skip them.
	// They are not skipped twice in a row, or a program could delay packets indefinitely.
	if p.pumped = n > 0 && !p.pumped; !p.pumped && p.dev != nil {
		p.dev.PollOnce()
	}
	found := p.s.ends.answer(false)
	p.s.flushDeferred()
	p.s.out.Advance()
	if !errors.Is(err, wire.ErrNothing) {
		p.over, p.err = true, err
		wire.Notify(p.wake)
	}
	return found || n > 0
}

// pump handles whole frames. It returns ErrNothing as long as more may arrive.
func (p *polling) pump() (frames int, err error) {
	for ; frames < maxPumped; frames++ {
		if p.s.full() { // only detect the end of the connection
			return frames, p.rings.Ready(math.MaxInt)
		}
		err := p.s.in.Whole()
		if err == nil {
			err = p.s.frame()
		}
		if err != nil {
			return frames, err
		}
	}
	return frames, wire.ErrNothing
}

// sleep waits until the session needs polling. It polls once before that, because events seen but not handled by
// other callers would not wake it up.
func (p *polling) sleep(polled time.Duration) {
	p.asleep.Store(true)
	defer p.asleep.Store(false)
	if !p.owned.CompareAndSwap(false, true) {
		return // another caller polls
	}
	idle := !p.over && !p.poll() && p.rings.Sleep() && (!p.s.out.Stalled.Load() || p.rings.Waits())
	p.owned.Store(false)
	if !idle || p.s.ends.some.Load() || p.watch.Arm() != nil {
		return
	}
	ctx := context.Background() // the context never ends
	if p.dev != nil {
		_ = p.dev.Sleep(ctx, p.wake, polled)
	} else {
		_ = p.spin.Sleep(ctx, p.wake, polled)
	}
}

// ended schedules a poll of the session, because an operation is complete.
func (p *polling) ended() {
	if p.asleep.Load() {
		p.awaken()
	}
}
