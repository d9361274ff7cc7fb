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
	engine *Engine
	// network is the number of the transport.
	network   int
	transport PollTransport
	batch     []RxPacket
	// placements holds the placements of the transport's peers, and placing reports whether there are any.
	// placementTable.mu guards placements.
	placements Placements
	placing    atomic.Bool

	// round is the number of the round that began at roundStart. drainedRound is the number of the last round in which
	// Poll found no more packets, or found more packets than can have been waiting when the round began.
	round, drainedRound atomic.Uint32
	// polled is the number of packets that the polling goroutine has processed in round polledRound. capacity is the
	// maximum number of packets that may have been waiting when the round began. This limit keeps a flood from delaying
	// time-outs.
	polled, capacity int
	polledRound      uint32
	// roundStart and processedUntil are guarded by the engine's lock. All packets received before processedUntil have
	// been processed.
	roundStart, processedUntil handshake.Instant
}

const (
	// defaultCapacity is the number of packets that a transport of unknown capacity is assumed to hold.
	defaultCapacity = 1 << 16
	// minCharge is the minimum charge for a datagram to a socket's receive buffer, in bytes of the requested
	// size: Linux charges twice that.
	minCharge = 256
)

func newSource(e *Engine, network int, tr PollTransport) *source {
	s := &source{engine: e, network: network, transport: tr, batch: make([]RxPacket, batchSize), capacity: defaultCapacity}
	if b, ok := tr.(interface{ ReceiveBuffer() (asked, granted int) }); ok {
		_, granted := b.ReceiveBuffer()
		s.capacity = granted / minCharge
	}
	return s
}

// Poll receives and processes packets, and returns their number.
func (s *source) Poll() (n int, err error) {
	round := s.round.Load()
	var gen uint32
	if s.placing.Load() {
		n, gen, err = s.engine.placements.pollInto(s)
	} else {
		n, err = s.transport.Poll(s.batch, nil)
	}
	if n > 0 {
		s.engine.receiveBatch(s.network, s.batch[:n], gen)
	}
	s.notePoll(n, round)
	return n, err
}

// notePoll notes that a Poll which began in round processed n packets.
func (s *source) notePoll(n int, round uint32) {
	if s.polledRound != round {
		s.polledRound, s.polled = round, 0
	}
	s.polled += n
	if n > 0 && s.polled <= s.capacity {
		return
	}
	if s.drainedRound.Load() != round {
		s.drainedRound.Store(round)
	}
}

// advance starts another round if the last one is complete. The caller holds the lock.
func (s *source) advance(now handshake.Instant) {
	if round := s.round.Load(); s.drainedRound.Load() == round {
		s.processedUntil, s.roundStart = s.roundStart, now
		s.round.Store(round + 1)
	}
}

// Sleep announces that no goroutine polls.
func (s *source) Sleep() bool { return s.transport.Sleep() }
