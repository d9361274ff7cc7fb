package mpe

import (
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// source receives the packets of a transport that can be polled. It implements progress.Source.
//
// It also tracks the time up to which all received packets have been processed. A rank that the system has delayed
// may have unread packets in its socket when its time-outs expire, and must not blame its peers.
type source struct {
	e *Engine
	// network is the number of the transport.
	network int
	tr      PollTransport
	batch   []RxPacket
	// placements holds the placements of the transport's peers, and placing reports whether there are any.
	// placed.mu guards placements.
	placements Placements
	placing    atomic.Bool

	// round is the number of the round that began at since. seen is the number of the last round in which Poll
	// found no more packets, or found more packets than can have been waiting when the round began.
	round, seen atomic.Uint32
	// taken is the number of packets that the polling goroutine has processed in round number of. holds is the
	// maximum number of packets that may have been waiting when the round began. This limit keeps a flood from
	// delaying time-outs.
	taken, holds int
	of           uint32
	// since and known are guarded by the engine's lock. All packets received before known have been processed.
	since, known handshake.Instant
}

const (
	// defaultHolds is the number of packets that a transport of unknown capacity is assumed to hold.
	defaultHolds = 1 << 16
	// leastCharge is the minimum charge for a datagram to a socket's receive buffer, in bytes of the requested
	// size: Linux charges twice that.
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

// Poll receives and processes packets, and returns their number.
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

// found notes that a Poll which began in round processed n packets.
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

// advance starts another round if the last one is complete. The caller holds the lock.
func (s *source) advance(now handshake.Instant) {
	if round := s.round.Load(); s.seen.Load() == round {
		s.known, s.since = s.since, now
		s.round.Store(round + 1)
	}
}

// Sleep announces that no goroutine polls.
func (s *source) Sleep() bool { return s.tr.Sleep() }
