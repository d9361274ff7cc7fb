package mpe

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// pollTime is for how long a reader looks for packets before it waits in
	// the kernel, while somebody waits for a message: longer than a round trip
	// in a data centre, shorter than a time slice.
	pollTime = 50 * time.Microsecond
	// pollGap is the gap between packets, smoothed, up to which looking is
	// likely to find something.
	pollGap = 2 * pollTime
	// maxGap is the longest gap that is remembered, so that a few quick
	// packets after a pause are enough to begin to look again.
	maxGap = 16 * pollGap
	// nextWait is for how long a reader looks although nobody waits: whoever
	// has just been served may come back for more.
	nextWait = 10 * time.Microsecond
	// heldUp is how long it takes to look once if other processes want the
	// core, less than their time slice and more than a hiccup: then looking
	// takes from them what they may need to answer.
	heldUp = 500 * time.Microsecond
	// afterHeldUp is for how long a reader does not look then.
	afterHeldUp = 10 * time.Millisecond
)

// readers counts the readers of the process that could look. A reader that looks
// needs a core of its own, and so does whoever uses what it finds.
var readers atomic.Int32

// reader reads a transport and decides how to wait for it.
type reader struct {
	tr   Transport
	poll PollTransport // nil if tr is none
	// gap is the smoothed time that a wait takes.
	gap time.Duration
	// notBefore is when looking may pay again.
	notBefore time.Duration
}

func newReader(tr Transport) *reader {
	r := &reader{tr: tr}
	if p, ok := tr.(PollTransport); ok && p.CanPoll() {
		r.poll = p
	}
	return r
}

// recv waits for packets: it looks for a while if somebody waits for them and
// they have been coming quickly, and then lets the kernel wake it.
func (r *reader) recv(e *Engine, batch []Arrival) (int, error) {
	if r.poll == nil {
		return r.tr.Recv(batch)
	}
	start := e.now()
	n, err := r.look(e, batch, start)
	if n == 0 && err == nil {
		n, err = r.tr.Recv(batch)
	}
	r.gap += (min(e.now()-start, maxGap) - r.gap) / 4
	return n, err
}

// look polls while that is likely to be worth its while.
func (r *reader) look(e *Engine, batch []Arrival, start time.Duration) (int, error) {
	if r.gap > pollGap || start < r.notBefore || 2*int(readers.Load()) > runtime.GOMAXPROCS(0) {
		return 0, nil
	}
	wanted := start // when somebody was last seen to wait
	for last := start; ; {
		n, err := r.poll.Poll(batch)
		if n > 0 || err != nil {
			return n, err
		}
		runtime.Gosched()
		now := e.now()
		if e.waiting.Load() > 0 {
			wanted = now
		}
		switch {
		case now-last > heldUp:
			r.notBefore = now + afterHeldUp
			return 0, nil
		case now-start > pollTime || now-wanted > nextWait:
			return 0, nil
		}
		last = now
	}
}

// read feeds one transport's packets to the peers until it is closed.
func (e *Engine) read(tr Transport) {
	batch, r := make([]Arrival, batchSize), newReader(tr)
	if r.poll != nil {
		readers.Add(1)
		defer readers.Add(-1)
	}
	for {
		n, err := r.recv(e, batch)
		if n > 0 {
			e.arrived(tr, batch[:n])
		}
		if errors.Is(err, ErrTransportClosed) {
			return
		}
		if err != nil {
			e.cfg.Observer.TransportError(e.rank, err)
			select { // a network that is out of order must not cost a core
			case <-time.After(recvRetry):
			case <-e.stop:
			}
		}
	}
}
