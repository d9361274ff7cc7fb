package mpe

import (
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/progress"
)

// source receives the packets of a transport that supports polling. It implements progress.Source.
//
// It also tracks the time up to which all received packets have been processed: when the system delays a rank, its
// timeouts may expire while answers are still unread in its socket, and it must not declare its peers unreachable then.
type source struct {
	engine *Engine
	// network is the number of the transport.
	network   int
	transport PollTransport
	batch     []RxPacket
	// placements holds the placements of the transport's peers. It is guarded by placementTable.mu. placing is set
	// while placements is not empty.
	placements Placements
	placing    atomic.Bool

	// round is the number of the round of polling that began at roundStart. drainedRound is the last round whose
	// packets are all processed: Poll found no more packets, or returned more than the transport can have held when the
	// round began.
	round, drainedRound atomic.Uint32
	// polled is the number of packets processed in round polledRound. capacity is the maximum number of packets that
	// the transport can have held when the round began. It ends the round even if packets keep arriving, so that a
	// flood cannot delay timeouts.
	polled, capacity int
	polledRound      uint32
	// All packets received before processedUntil have been processed. The engine's lock guards roundStart and
	// processedUntil.
	roundStart, processedUntil handshake.Instant
}

const (
	// defaultCapacity is the number of packets that a transport of unknown capacity is assumed to hold.
	defaultCapacity = 1 << 16
	// minCharge is the minimum number of bytes that a datagram occupies in a socket's receive buffer, relative to the
	// size requested with SO_RCVBUF. Linux actually charges twice this number, against a buffer of twice the requested
	// size.
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
	endLease(s.engine)
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

// notePoll records that a Poll that began in the given round has processed n packets.
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

// advance starts the next round if all packets of the current one have been processed. The caller holds the lock.
func (s *source) advance(now handshake.Instant) {
	if round := s.round.Load(); s.drainedRound.Load() == round {
		s.processedUntil, s.roundStart = s.roundStart, now
		s.round.Store(round + 1)
	}
}

// Sleep announces that no goroutine polls.
func (s *source) Sleep() bool {
	endLease(s.engine)
	return s.transport.Sleep()
}

// Unwatch implements progress.Unwatcher.
func (s *source) Unwatch() {
	if u, ok := s.transport.(progress.Unwatcher); ok {
		u.Unwatch()
	}
}
