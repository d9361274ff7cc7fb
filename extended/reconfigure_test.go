package extended

import (
	"testing"
	"time"
)

// A silence that has begun is measured by the limit that applied when it began, and the next one by the new limit.
func TestReconfigureUnreachableAfter(t *testing.T) {
	declaredUnreachable := func(s *scripted, until time.Duration) (bool, time.Duration) {
		for s.now < until {
			at, ok := s.c.Deadline()
			if !ok {
				return false, s.now
			}
			s.now = max(at, s.now+1)
			s.last = s.c.Tick(s.now, nil)
			if s.count(SendDone) > 0 {
				return true, s.now
			}
			s.flush()
		}
		return false, s.now
	}
	next := Config{Timing: Timing{UnreachableAfter: 2 * time.Second}, EagerLimit: 10}

	s := meet(t, Config{Timing: Timing{UnreachableAfter: 8 * time.Second}})
	s.send(1, 1)
	s.now += 100 * time.Millisecond
	began := s.now
	s.c.Reconfigure(s.now, &next)
	if ok, at := declaredUnreachable(s, began+20*time.Second); !ok || at < began+7*time.Second {
		t.Errorf("the earlier silence ended after %v, %v", at-began, ok)
	}

	s = meet(t, Config{Timing: Timing{UnreachableAfter: 8 * time.Second}})
	s.send(1, 1).send(2, 1)
	s.c.Reconfigure(s.now, &next)
	s.now += time.Millisecond
	s.ack(2, 65537, 1<<20) // the first of them
	s.flush()
	began = s.now
	if ok, at := declaredUnreachable(s, began+20*time.Second); !ok || at > began+4*time.Second {
		t.Errorf("the next silence ended after %v, %v", at-began, ok)
	}

	s = meet(t, Config{})
	s.c.Reconfigure(s.now, &next)
	if got := s.c.Config(); got.Timing.UnreachableAfter != 2*time.Second || got.EagerLimit != 10 ||
		s.c.timeoutChange != nil {
		t.Errorf("an idle one has %+v", got)
	}
	s.send(1, 10).send(2, 11)
	if st := s.c.Stats(); st.EagerSends != 1 {
		t.Errorf("%d of 2 messages went eagerly", st.EagerSends)
	}
}
