package attach

import (
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// possible finds out what a rank that is asked itself would say at once, without asking
// the daemon. A call that one rank is told has not been made must not have been made by
// another that is told later.
func (c *Client) possible(m *mpe.Collective) error {
	x := m.Call
	if len(m.Members) != x.Ranks || x.Rank < 0 || x.Rank >= x.Ranks || m.Members[x.Rank] != c.rank {
		return refuseCall(m, "it is rank %d of the world, which is not number %d of %d members", c.rank, x.Rank, x.Ranks)
	}
	x.Order, x.FPGAs, x.Flows, x.Token = nil, nil, true, 0
	words := false
	for i, rank := range m.Members {
		if rank < 0 || rank >= len(c.peers) {
			_, err := c.Peer(rank)
			return err
		}
		if i != x.Rank {
			words = words || c.peers[rank].Words
			x.Flows = x.Flows && !c.peers[rank].NoComms
		}
	}
	switch {
	case m.Tag < 0 || m.Tag > math.MaxInt32:
		return fmt.Errorf("tag %d: %w", m.Tag, mpe.ErrTag)
	case x.Elem > math.MaxInt32:
		return refuseCall(m, "elements of %d bytes", x.Elem)
	}
	if err := sound(&x); err != nil {
		return err
	}
	if err := reduces(m); err != nil {
		return err
	}
	if err := roomy(m); err != nil {
		return err
	}
	return c.feasible(m, &x, words)
}

// reduces wants a reduction to have an operation.
func reduces(m *mpe.Collective) error {
	switch m.Call.Collective {
	case coll.Reduce, coll.Allreduce, coll.ReduceScatter, coll.Scan, coll.Exscan:
	default:
		return nil
	}
	if size := m.Type.Size(); max(m.Call.Elem, 1) != size {
		return refuseCall(m, "elements of %d bytes are not of type %v, which has %d", m.Call.Elem, m.Type, size)
	}
	if m.Op < op.Op(len(defined)) && defined[m.Op][m.Type] { // as its size is right, there is such a type
		return nil
	}
	_, err := op.Lookup(m.Op, m.Type)
	return err
}

// defined has the operations that there are. To look one up takes memory.
var defined = func() (list [op.MinLoc + 1][op.Float64Loc + 1]bool) {
	for o := range list {
		for t := range list[o] {
			_, err := op.Lookup(op.Op(o), op.Type(t))
			list[o][t] = err == nil
		}
	}
	return list
}()

// roomy wants the buffers to be as long as the call says.
func roomy(m *mpe.Collective) error {
	c, s := &m.Call, shapeOf(&m.Call)
	send, recv := s.send, s.recv
	for _, l := range layouts(c) {
		switch {
		case l == nil || c.Collective == coll.ReduceScatter:
		case l == &c.Send:
			send = reach(l)
		default:
			recv = reach(l)
		}
	}
	if send > len(m.Send) {
		return refuseCall(m, "it needs %d bytes of the send buffer, which has %d", send, len(m.Send))
	}
	if recv > len(m.Recv) {
		return refuseCall(m, "it needs %d bytes of the receive buffer, which has %d", recv, len(m.Recv))
	}
	return nil
}

// reach is how long a buffer must be that has all of a layout's blocks.
func reach(l *coll.Layout) (end int) {
	next := 0
	for i, size := range l.Sizes {
		off := next
		if l.Offsets != nil {
			off = l.Offsets[i]
		}
		next = off + size
		if size > 0 {
			end = max(end, next)
		}
	}
	return end
}

// feasible looks at the algorithm that the caller has named, and, where a peer's wire
// carries whole words only, at the messages of the one that is due.
func (c *Client) feasible(m *mpe.Collective, x *coll.Call, words bool) error {
	words = words && max(x.Elem, 1)%protocol.WordLen != 0
	switch {
	case m.Algorithm == "tree": // which needs what only the daemon knows
		return nil
	case m.Algorithm != "":
		a, err := coll.Find(x.Collective, m.Algorithm)
		if err == nil {
			err = a.Fits(*x)
		}
		if err != nil || !words {
			return err
		}
		return c.carried(m, x, a)
	case words:
		y := *x                    // so that x need not be allocated otherwise
		a, err := coll.ByOrder(&y) // as engines have it
		if err != nil {
			return err
		}
		return c.carried(m, &y, a)
	}
	return nil
}

// carried looks for messages that are no whole words and that a peer's wire would have to
// carry.
func (c *Client) carried(m *mpe.Collective, x *coll.Call, a *coll.Algorithm) error {
	x.Token = protocol.WordLen
	s, err := a.Schedule(*x)
	if err != nil {
		return err
	}
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if step.Len%protocol.WordLen == 0 || step.Kind != coll.StepSend && step.Kind != coll.StepRecv {
			continue
		}
		if p := &c.peers[m.Members[step.Peer]]; p.Words {
			return fmt.Errorf("%v by %s has a message of %d bytes between rank %d and rank %d of the world: %w, which the wire (profile %s) needs",
				x.Collective, a.Name, step.Len, c.rank, m.Members[step.Peer], mpe.ErrLength, p.Profile)
		}
	}
	return nil
}

func refuseCall(m *mpe.Collective, format string, args ...any) error {
	return &coll.CallError{Collective: m.Call.Collective, Algorithm: m.Algorithm, Problem: fmt.Sprintf(format, args...)}
}
