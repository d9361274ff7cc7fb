package mpe

import (
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// source has the packets of a transport that can be polled. It is a progress.Source.
//
// It also knows up to when all that has arrived was taken. A rank that is held up has
// packets in its socket while its time-outs run off, and has only itself to wait for.
type source struct {
	e      *Engine
	tr     PollTransport
	placer DirectPlacer // or nil
	batch  []RxPacket

	// round is the number of the round that began at since, and seen of the last one
	// in which Poll has found nothing, or something maxFinds times.
	round, seen atomic.Uint32
	// finds are those of the round of, for the goroutine that polls.
	finds int
	of    uint32
	// since and known are guarded by the engine's lock: all that had arrived at known
	// was taken.
	since, known handshake.Instant
}

// maxFinds is after how many Polls that have found something all that was there before
// them is taken to have been: sockets hold less than so many batches. So a flood does not
// keep time-outs from running off.
const maxFinds = 1024

func newSource(e *Engine, tr PollTransport) *source {
	s := &source{e: e, tr: tr, batch: make([]RxPacket, batchSize)}
	s.placer, _ = tr.(DirectPlacer)
	return s
}

// Poll takes what has arrived, and returns how many packets that was.
func (s *source) Poll() (n int, err error) {
	round := s.round.Load()
	var gen uint32
	if s.placer != nil && s.e.placed.on.Load() {
		n, gen, err = s.e.placed.poll(s.placer, s.batch)
	} else {
		n, err = s.tr.Poll(s.batch)
	}
	if n > 0 {
		s.e.receiveBatch(s.tr, s.batch[:n], gen)
	}
	s.found(n, round)
	return n, err
}

// found notes what a Poll has come to that began in a round.
func (s *source) found(n int, round uint32) {
	if s.of != round {
		s.of, s.finds = round, 0
	}
	if n > 0 {
		if s.finds++; s.finds < maxFinds {
			return
		}
	}
	if s.seen.Load() != round {
		s.seen.Store(round)
	}
}

// advance begins another round if the last one is over. The lock is held.
func (s *source) advance(now handshake.Instant) {
	if round := s.round.Load(); s.seen.Load() == round {
		s.known, s.since = s.since, now
		s.round.Store(round + 1)
	}
}

// Sleep announces that no goroutine polls.
func (s *source) Sleep() bool { return s.tr.Sleep() }
