package mpe

import (
	"context"
	"fmt"
)

// probe is a caller of Probe that waits for a message.
type probe struct {
	Match
	found chan struct{} // has room for one value
}

// Probe finds a message that a receive with these would get, without
// receiving it. With wait set it waits for one until ctx ends; the error is then
// ctx's.
func (e *Engine) Probe(ctx context.Context, m Match, wait bool) (Status, bool, error) {
	if err := e.check(&Operation{Kind: OpRecv, Peer: m.Source, Tag: m.Tag, Comm: m.Comm}); err != nil {
		return Status{}, false, err
	}
	r := Request{tag: int32(m.Tag), peer: m.Source}
	if m.Source != AnySource {
		r.p = e.peers[m.Source]
	}
	var mine *probe
	polled := false
	e.lock()
	for {
		if e.state != running {
			e.endProbe(mine)
			e.mu.Unlock()
			return Status{}, false, fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
		}
		if in, ok := e.matchers.of(m.Comm).Probe(int32(m.Source), r.matchTag()); ok {
			st := in.status()
			if m.Tag != AnyTag {
				st.Tag = m.Tag // a peer without tags has that of the receive
			}
			e.endProbe(mine)
			e.mu.Unlock()
			return st, true, nil
		}
		if !wait && polled {
			e.mu.Unlock()
			return Status{}, false, nil
		}
		if !wait {
			e.mu.Unlock()
			e.pollOnce()
			polled = true
			e.lock()
			continue
		}
		if mine == nil {
			mine = &probe{Match: m, found: make(chan struct{}, 1)}
			e.probes = append(e.probes, mine)
		}
		e.mu.Unlock()
		err := e.Await(ctx, mine.found)
		e.lock()
		if err != nil {
			e.endProbe(mine)
			e.mu.Unlock()
			return Status{}, false, fmt.Errorf("rank %d waits for a message%s to probe: %w", e.rank, describeMatch(m), err)
		}
	}
}

// wakeProbes wakes the probes that may be waiting for the message.
func (e *Engine) wakeProbes(in *inbound) {
	for _, p := range e.probes {
		if p.Comm == in.comm && (p.Source == AnySource || p.Source == in.source) {
			select {
			case p.found <- struct{}{}:
			default:
			}
		}
	}
}

func (e *Engine) endProbe(mine *probe) {
	for i, p := range e.probes {
		if p == mine {
			e.probes = append(e.probes[:i], e.probes[i+1:]...)
			return
		}
	}
}

// describeMatch puts what a receive waits for into words.
func describeMatch(m Match) string {
	s := " from any rank"
	if m.Source != AnySource {
		s = fmt.Sprintf(" from rank %d", m.Source)
	}
	if m.Tag != AnyTag {
		s += fmt.Sprintf(" with tag %d", m.Tag)
	}
	if m.Comm != 0 {
		s += fmt.Sprintf(" in communicator %d", m.Comm)
	}
	return s
}
