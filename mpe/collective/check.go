package collective

import (
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Caller describes a rank that makes collective calls. Operation.Check needs this information.
type Caller interface {
	// Rank returns the rank in the world.
	Rank() int
	// Wire describes the wire to a world rank. It returns an error if that rank does not exist.
	Wire(rank int) (Wire, error)
}

// Wire describes the wire between two ranks. Profile, Words, NoComms and NoEmpty have the same meaning as in
// mpe.PeerInfo. SingleCopy means that payload is copied directly between the ranks' memories. Shared means that the
// ranks can use shared buffers. Clients of a daemon set neither of the two.
type Wire struct {
	Profile                 string
	Words, NoComms, NoEmpty bool
	SingleCopy, Shared      bool
}

// WireLimits describes the combined limits of the wires to all members of a communicator.
type WireLimits struct {
	// Words means that some wire carries only whole words. ByOrder means that some wire carries no communicators, so
	// that messages match by order alone. HasLimits means that either limit applies, or that some wire carries no empty
	// messages.
	Words, ByOrder, HasLimits bool
}

// Check checks a call of rank before anything is sent, and fills in defaults. Engines and clients of a daemon both use
// it, so that they reject the same calls with the same errors.
//
// The error is a *coll.CallError, or matches handshake.ErrTag, op.ErrUndefined or the error of rank.Wire. Check does
// not check m.Algorithm; see CheckAlgorithm.
func (m *Operation) Check(rank Caller) (limits WireLimits, err error) {
	if limits, err = m.checkMembers(rank); err != nil {
		return limits, err
	}
	call := &m.Call
	switch {
	case m.Tag < 0 || m.Tag > math.MaxInt32:
		return limits, fmt.Errorf("tag %d: %w", m.Tag, handshake.ErrTag)
	case call.Elem > math.MaxInt32:
		return limits, m.callError("elements of %d bytes: at most %d are allowed", call.Elem, math.MaxInt32)
	case call.Token < 0 || call.Token > protocol.WordLen:
		return limits, m.callError("tokens of %d bytes: at most %d are allowed", call.Token, protocol.WordLen)
	}
	// Tokens must have the same size on all ranks, even if only some ranks have a peer that cannot receive empty
	// messages.
	if limits.HasLimits && call.Token == 0 {
		call.Token = protocol.WordLen
	}
	if err := call.Check(); err != nil {
		return limits, err
	}
	if err := m.checkOperation(); err != nil {
		return limits, err
	}
	send, recv := call.Lengths()
	switch {
	case send > len(m.Send):
		return limits, m.callError("it needs %d bytes of the send buffer, which has %d", send, len(m.Send))
	case recv > len(m.Recv):
		return limits, m.callError("it needs %d bytes of the receive buffer, which has %d", recv, len(m.Recv))
	}
	return limits, nil
}

// checkMembers checks the members, and returns the limits of their wires.
func (m *Operation) checkMembers(rank Caller) (limits WireLimits, err error) {
	call, self := &m.Call, rank.Rank()
	if len(m.Members) != call.Ranks || call.Rank < 0 || call.Rank >= call.Ranks || m.Members[call.Rank] != self {
		return limits, m.callError("it is rank %d of the world, which is not number %d of %d members", self, call.Rank,
			call.Ranks)
	}
	for i, world := range m.Members {
		if i == call.Rank {
			continue
		}
		wire, err := rank.Wire(world)
		if err != nil {
			return limits, err
		}
		limits.Words = limits.Words || wire.Words
		limits.ByOrder = limits.ByOrder || wire.NoComms
		limits.HasLimits = limits.HasLimits || wire.Words || wire.NoComms || wire.NoEmpty
	}
	call.Flows = !limits.ByOrder
	return limits, nil
}

// Reduces reports whether the call combines elements.
func (m *Operation) Reduces() bool {
	switch m.Call.Collective {
	case coll.Reduce, coll.Allreduce, coll.ReduceScatter, coll.Scan, coll.Exscan:
		return true
	}
	return false
}

// checkOperation checks that a reduction's operation is defined for the type of the elements.
func (m *Operation) checkOperation() error {
	if !m.Reduces() || m.User != nil {
		return nil
	}
	if size := m.Type.Size(); max(m.Call.Elem, 1) != size {
		return m.callError("elements of %d bytes are not of type %v, which has %d", m.Call.Elem, m.Type, size)
	}
	_, err := op.Lookup(m.Op, m.Type)
	return err
}

// CheckAlgorithm returns a *coll.CallError if m.Algorithm is set but unknown, or does not support the call.
func (m *Operation) CheckAlgorithm() error {
	if m.Algorithm == "" {
		return nil
	}
	a, err := coll.Find(m.Call.Collective, m.Algorithm)
	if err != nil {
		return err
	}
	return a.PrepareCall(&m.Call)
}

// CheckMessages returns an error that matches handshake.ErrLength if a wire with Words would have to carry a message
// that is not a whole number of words. algorithm must support the call. CheckMessages overwrites s.
func (m *Operation) CheckMessages(rank Caller, limits WireLimits, algorithm *coll.Algorithm, s *coll.Schedule) error {
	if !limits.Words || max(m.Call.Elem, 1)%protocol.WordLen == 0 {
		return nil
	}
	algorithm.Build(s, &m.Call)
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if step.Len%protocol.WordLen == 0 || step.Kind != coll.StepSend && step.Kind != coll.StepRecv {
			continue
		}
		peer := m.Members[step.Peer]
		if w, _ := rank.Wire(peer); w.Words {
			return fmt.Errorf("%v by %s has a message of %d bytes between rank %d and rank %d of the world: %w, "+
				"which the wire (profile %s) needs",
				m.Call.Collective, algorithm.Name, step.Len, rank.Rank(), peer, handshake.ErrLength, w.Profile)
		}
	}
	return nil
}

func (m *Operation) callError(format string, args ...any) error {
	return &coll.CallError{Collective: m.Call.Collective, Algorithm: m.Algorithm, Problem: fmt.Sprintf(format, args...)}
}
