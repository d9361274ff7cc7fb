package attach

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Messages that matched probes of a program have taken out of the matching. They are the program's: it has to receive each
// of them, once, and what it has not received ends with it.

// mayClaim reports why a program may not have another such message, or nil.
func (s *session) mayClaim() error {
	limit := s.server.opts.Limits.Operations
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) >= limit {
		return fmt.Errorf("rank %d: %w: a program may have %d messages of matched probes", s.rank, mpe.ErrFull, limit)
	}
	return nil
}

// noteClaim notes the message that a probe has taken, if it has.
func (s *session) noteClaim(st *mpe.Status) {
	if st.Claim == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims == nil {
		s.claims = make(map[int32]int32)
	}
	s.claims[int32(st.Claim)] = int32(st.Peer)
}

// checkClaim refuses an operation in the communicator of such messages that is not the receive of one.
func (s *session) checkClaim(r *start) error {
	if r.comm != mpe.ClaimComm {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if peer, ok := s.claims[r.tag]; !ok || peer != r.peer || r.kind != mpe.OpRecv {
		return violation("START of kind %d for message %d of rank %d, which no matched probe has given to the program", r.kind, r.tag, r.peer)
	}
	return nil
}

// endClaim forgets the message that an operation receives, which has been admitted.
func (s *session) endClaim(r *start) {
	if r.comm == mpe.ClaimComm {
		s.mu.Lock()
		delete(s.claims, r.tag)
		s.mu.Unlock()
	}
}

// dropClaims drops the messages that the program has not received, as it is gone.
func (s *session) dropClaims(gone error) {
	s.mu.Lock()
	claims := s.claims
	s.claims = nil
	s.mu.Unlock()
	for tag, peer := range claims {
		op, err := s.dev.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: int(peer), Tag: int(tag), Comm: mpe.ClaimComm, AnyDatatype: true})
		if err != nil {
			continue // the rank has closed
		}
		if l, ok := op.(detacher); ok {
			_, _ = l.Abandon(gone, nil)
		} else {
			_, _ = op.Await(endedContext(gone))
		}
		op.Free()
	}
}
