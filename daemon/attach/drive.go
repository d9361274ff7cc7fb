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

// A session that exchanges frames through rings has no dedicated goroutines to read frames and answer completed
// operations. Instead, it is polled: its ring, its rank and its completed operations. Any polling goroutine of the
// process (progress.Shared) also polls the session, for example the goroutine of another session, or a kernel waiting
// for a message. A single goroutine can therefore carry a message from one program to another without a context switch.
// The session's own goroutine polls only while no other goroutine does. If the session stays idle, its goroutine goes
// to sleep, and other goroutines then skip the session too.

// pollPause is the duration for which the session's goroutine sleeps while other goroutines poll the session.
const pollPause = time.Millisecond

// processorVisits is the number of polls by other goroutines after which the daemon publishes on which processor the
// polling goroutine runs. Publishing this after every poll would cost a system call each time.
const processorVisits = 64

// maxFramesPerPoll is the maximum number of a program's frames handled in one poll.
const maxFramesPerPoll = 64

// polledSession is the state of a polled session.
type polledSession struct {
	session *session
	rings   wire.Rings
	dev     pollDevice
	watch   progress.Watch
	spin    progress.SpinPolicy

	// beingPolled is set while a goroutine, the owner, polls the session. otherFinds counts the polls by other
	// goroutines that found work. When the session ends, the owner sets finished and stores the reason in err.
	beingPolled atomic.Bool
	otherFinds  atomic.Uint32
	finished    bool
	err         error
	// visits counts the times that goroutines other than the session's own have polled the session. Only the current
	// owner may access it.
	visits uint
	// skippedRank is set if the last poll handled frames and therefore did not poll the rank.
	skippedRank bool

	// isAsleep is set while no goroutine polls the session. The method wakeUp clears it.
	isAsleep atomic.Bool
	wake     chan struct{} // wakes up the session's goroutine
}

// pollDevice is a device that any goroutine can poll.
type pollDevice interface {
	// PollOnce polls the device once. Sleep blocks until the channel c has a value, and makes progress meanwhile.
	// polled is the time for which the caller of Sleep has already polled.
	PollOnce()
	Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error
}

func newPolling(r wire.Rings, s *session, oversubscribed bool) (*polledSession, error) {
	p := &polledSession{session: s, rings: r, wake: make(chan struct{}, 1)}
	p.spin.Init(oversubscribed)
	p.dev, _ = s.dev.(pollDevice)
	var err error
	p.watch, err = progress.NewWatch(r.Descriptor(), func(bool) time.Duration { p.wakeUp(); return 0 })
	return p, err
}

// wakeUp ends the session's sleep, so that its own goroutine and other polling goroutines poll it again.
func (p *polledSession) wakeUp() {
	p.isAsleep.Store(false)
	wire.Notify(p.wake)
}

// run polls the session until it ends, and returns the reason. No goroutine polls the session after run has returned.
func (p *polledSession) run() error {
	progress.RegisterShared(p)
	for {
		finds := p.otherFinds.Load()
		polled, ok := p.spin.PollShared(progress.Clock, p.wake)
		woken := false
		select {
		case <-p.wake:
			woken = true
		default:
		}
		if p.beingPolled.CompareAndSwap(false, true) {
			if p.finished {
				break // keep it owned, so that nothing polls it again
			}
			p.beingPolled.Store(false)
		}
		if !ok {
			time.Sleep(pollPause)
			woken = p.otherFinds.Load() != finds
		}
		if !woken {
			p.sleep(polled)
		}
	}
	progress.UnregisterShared(p)
	p.watch.Remove()
	return p.err
}

// Visit implements progress.Shared.
func (p *polledSession) Visit() bool {
	if p.isAsleep.Load() || p.beingPolled.Load() || !p.beingPolled.CompareAndSwap(false, true) {
		return false
	}
	found := !p.finished && p.poll()
	if found {
		p.otherFinds.Add(1)
	}
	if p.visits++; p.visits%processorVisits == 0 {
		p.rings.PublishProcessor()
	}
	p.beingPolled.Store(false)
	return found
}

// poll handles frames, polls the rank and answers completed operations. It reports whether it found work. The caller
// must be the owner.
func (p *polledSession) poll() bool {
	n, err := p.handleFrames()
	// The effect of a program's frames is urgent, and the rank's sockets are usually empty, so skip the rank after
	// handling frames. Never skip it twice in a row, because the program could then delay packets indefinitely.
	if p.skippedRank = n > 0 && !p.skippedRank; !p.skippedRank && p.dev != nil {
		p.dev.PollOnce()
	}
	found := p.session.completions.answer(false)
	p.session.flushDeferred()
	p.session.outbox.FlushStalled()
	if !errors.Is(err, wire.ErrNoData) {
		p.finished, p.err = true, err
		wire.Notify(p.wake)
	}
	return found || n > 0
}

// handleFrames handles up to maxFramesPerPoll complete frames. It returns ErrNoData if the ring contains no further
// complete frame.
func (p *polledSession) handleFrames() (frames int, err error) {
	for ; frames < maxFramesPerPoll; frames++ {
		if p.session.tooManyRefusals() { // only check whether the connection is closed
			return frames, p.rings.Ready(math.MaxInt)
		}
		err := p.session.reader.FrameReady()
		if err == nil {
			err = p.session.handleFrame()
		}
		if err != nil {
			return frames, err
		}
	}
	return frames, wire.ErrNoData
}

// sleep blocks until the session needs to be polled again. It first polls once, because events seen but not handled by
// other goroutines would not wake it up.
func (p *polledSession) sleep(polled time.Duration) {
	p.isAsleep.Store(true)
	defer p.isAsleep.Store(false)
	if !p.beingPolled.CompareAndSwap(false, true) {
		return // another goroutine is polling
	}
	idle := !p.finished && !p.poll() && p.rings.Sleep() && (!p.session.outbox.Stalled.Load() || p.rings.RequestSpace())
	p.beingPolled.Store(false)
	if !idle || p.session.completions.hasCompleted.Load() || p.watch.Arm() != nil {
		return
	}
	ctx := context.Background() // this context is never cancelled
	if p.dev != nil {
		_ = p.dev.Sleep(ctx, p.wake, polled)
	} else {
		_ = p.spin.Sleep(ctx, p.wake, polled)
	}
}

// notifyCompletion schedules a poll of the session after an operation has completed.
func (p *polledSession) notifyCompletion() {
	if p.isAsleep.Load() {
		p.wakeUp()
	}
}
