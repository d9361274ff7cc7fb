package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// readProbe probes for a message, at once or in a goroutine that waits for one.
func (s *session) readProbe() error {
	p, err := s.in.readProbe()
	if err != nil {
		return err
	}
	op := s.operation(start{id: p.id}, 0)
	answer, err := s.admit(op, 0, 0, 0)
	if err != nil {
		return err
	}
	if answer != nil {
		s.refuse(op, answer)
		return nil
	}
	m := mpe.Match{Source: int(p.source), Tag: int(p.tag), Comm: p.comm, Claim: p.claim}
	if p.claim {
		if err := s.mayClaim(); err != nil {
			op.end(&mpe.Status{}, false, err)
			return nil
		}
	}
	st, found, err := s.dev.Probe(s.ctx, m, false)
	s.noteClaim(&st)
	if !p.wait || found || err != nil {
		op.end(&st, found, err)
		return nil
	}
	if !s.probing(1) {
		op.end(&mpe.Status{}, false, fmt.Errorf("rank %d: %w: a program may have %d probes that wait", s.rank, mpe.ErrFull, maxProbes))
		return nil
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	op.stop = stop
	s.spawn(func() {
		defer stop(nil)
		st, found, err := s.dev.Probe(ctx, m, true)
		s.noteClaim(&st)
		s.probing(-1)
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = &causedError{err, cause}
		}
		op.finish(&st, found, err)
		s.out.putNow(op)
	})
	return nil
}

// probing counts probes that wait, and reports whether there may be one more.
func (s *session) probing(change int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probes+change > maxProbes {
		return false
	}
	s.probes += change
	return true
}

// causedError is an error that says that a context has ended, but not why.
type causedError struct{ error, cause error }

func (e *causedError) Error() string   { return fmt.Sprintf("%v (%v)", e.error, e.cause) }
func (e *causedError) Unwrap() []error { return []error{e.error, e.cause} }
