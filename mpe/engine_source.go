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
	e *Engine
	// network is the number of its transport.
	network int
	tr      PollTransport
	batch   []RxPacket
	// placements are those of the transport's peers, if placing. placed.mu guards them.
	placements Placements
	placing    atomic.Bool

	// round is the number of the round that began at since, and seen of the last one
	// in which Poll has found nothing, or more than there can have been.
	round, seen atomic.Uint32
	// taken are the packets of the round of, for the goroutine that polls, and holds
	// is how many may have been there when it began. So a flood does not keep time-outs from
	// running off.
	taken, holds int
	of           uint32
	// since and known are guarded by the engine's lock: all that had arrived at known
	// was taken.
	since, known handshake.Instant
}

const (
	// defaultHolds is how many packets a transport holds that does not say.
	defaultHolds = 1 << 16
	// leastCharge is what a datagram takes of a socket's receive buffer at least, in
	// the bytes that the buffer was asked for in: Linux charges twice as much.
	leastCharge = 256
)

func newSource(e *Engine, network int, tr PollTransport) *source {
	s := &source{e: e, network: network, tr: tr, batch: make([]RxPacket, batchSize), holds: defaultHolds}
	if b, ok := tr.(interface{ ReceiveBuffer() (asked, granted int) }); ok {
		_, granted := b.ReceiveBuffer()
		s.holds = granted / leastCharge
	}
	return s
}

// Poll takes what has arrived, and returns how many packets that was.
func (s *source) Poll() (n int, err error) {
	round := s.round.Load()
	var gen uint32
	if s.placing.Load() {
		n, gen, err = s.e.placed.pollInto(s)
	} else {
		n, err = s.tr.Poll(s.batch, nil)
	}
	if n > 0 {
		s.e.receiveBatch(s.network, s.batch[:n], gen)
	}
	s.found(n, round)
	return n, err
}

// found notes that a Poll which began in a round has taken n packets.
func (s *source) found(n int, round uint32) {
	if s.of != round {
		s.of, s.taken = round, 0
	}
	s.taken += n
	if n > 0 && s.taken <= s.holds {
		return
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
