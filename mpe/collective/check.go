package collective

import (
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Caller is a rank that makes collective calls, for Operation.Check.
type Caller interface {
	// Rank returns the rank in the world.
	Rank() int
	// Wire describes the messages to and from a rank of the world. It returns an error if there is no such rank.
	Wire(rank int) (Wire, error)
}

// Wire describes the messages between two ranks. Profile, Words, NoComms and NoEmpty are as in mpe.PeerInfo.
// SingleCopy means that payload is copied only once, between the memories of the ranks. Shared means that the ranks
// have shared buffers. Clients of a daemon set neither.
type Wire struct {
	Profile                 string
	Words, NoComms, NoEmpty bool
	SingleCopy, Shared      bool
}

// WireLimits describes the limits of the wires to the members of a communicator.
type WireLimits struct {
	// Words means that a wire carries only whole words. ByOrder means that a wire carries no communicators, so that
	// messages match by order alone. HasLimits means that a wire has one of these limits, or carries no empty messages.
	Words, ByOrder, HasLimits bool
}

// Check reports mistakes in a call of rank before anything is sent, and fills in defaults. It is the only check of
// a call, so that engines and clients of a daemon reject the same calls with the same errors.
//
// The error is a *coll.CallError, or matches handshake.ErrTag, op.ErrUndefined or the error of rank.Wire. Check does
// not check the algorithm that the call names: see CheckAlgorithm.
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
	// All ranks must send tokens of the same size, although only some ranks have a peer that receives no empty
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

// checkOperation checks that a reduction's operation is defined for its elements.
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

// CheckAlgorithm returns an error unless the algorithm that the call names supports the call. The error is a
// *coll.CallError.
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

// CheckMessages returns an error if the wires cannot carry the messages of an algorithm that accepts the call: to a
// peer with Words, all messages must be whole words. It reuses the memory of s. The error matches
// handshake.ErrLength.
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
