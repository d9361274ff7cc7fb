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

// A session whose frames come through a ring has no goroutine that reads, and none that sees operations end. It is
// polled: its ring, its rank, and what has ended, by whichever caller of the process polls (progress.Shared), which
// may be that of another program's session, or a kernel that waits for a message. So a message from one program to
// another is carried by one goroutine of the daemon, without a switch. The session's own goroutine polls while no
// other one does, and sleeps when nothing comes: then no other one polls the session, either.

// pauseTime is how long the session's goroutine sleeps while others poll.
const pauseTime = time.Millisecond

// processorVisits is after how many visits the program gets the number of the processor on which the daemon polls: to determine it costs a
// system call.
const processorVisits = 64

// maxPumped is how many frames of a program are handled at a time.
const maxPumped = 64

// polling is how a session is polled.
type polling struct {
	s     *session
	rings wire.Rings
	dev   pollDevice
	watch progress.Watch
	spin  progress.SpinPolicy

	// owned is set while a goroutine polls; finds counts how often others have found something. The
	// owner sets over when the session has ended, which err explains.
	owned atomic.Bool
	finds atomic.Uint32
	over  bool
	err   error
	// visits counts those of callers. The owner uses it.
	visits uint
	// pumped is set if the last poll has handled frames and carried no messages.
	pumped bool

	// asleep is set while the session is not polled: awaken has it polled again.
	asleep atomic.Bool
	wake   chan struct{} // has a value for its goroutine
}

// pollDevice is a device whose messages can be carried by any goroutine.
type pollDevice interface {
	// PollOnce carries what has come. Sleep has messages carried until c has a value, for a
	// caller that has polled for so long.
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

// awaken has the session polled: by a goroutine that polls anyway, or by its own one.
func (p *polling) awaken() {
	p.asleep.Store(false)
	wire.Notify(p.wake)
}

// run has the session polled until it has ended, and says why it has. Nothing polls it any longer then.
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
				break // and it stays owned
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

// poll carries messages, answers what has ended, and handles frames. It reports whether
// there was something. The caller is the owner.
func (p *polling) poll() bool {
	n, err := p.pump()
	// A program that has sent something waits for what it leads to, and the rank's sockets have
	// nothing most of the time. They are not left out twice, or a program could keep packets waiting.
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

// pump handles frames that have come as a whole. The error is errNothing as long as more may come.
func (p *polling) pump() (frames int, err error) {
	for ; frames < maxPumped; frames++ {
		if p.s.full() { // only the end of the connection matters
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

// sleep waits until there is something to be polled for. It polls before: what others have
// found and not handled does not wake it.
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
	ctx := context.Background() // which never ends
	if p.dev != nil {
		_ = p.dev.Sleep(ctx, p.wake, polled)
	} else {
		_ = p.spin.Sleep(ctx, p.wake, polled)
	}
}

// ended schedules a poll of the session: an operation is complete.
func (p *polling) ended() {
	if p.asleep.Load() {
		p.awaken()
	}
}
