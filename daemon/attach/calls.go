package attach

import (
	"bytes"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// programCall is a collective call made by a program.
type programCall struct {
	wire.Call
	layoutInts []int // memory for the call's layouts
	// reduction is set for a posted call whose reduction operation is a function of the program.
	reduction *reduction
}

// readCall handles CALL. It begins the call, or first collects the call's payload.
func (s *session) readCall() error {
	c, err := s.reader.ReadCall()
	if err != nil {
		return err
	}
	op := s.operation(wire.Start{ID: c.ID, Operation: mpe.Operation{Kind: wire.OpCall}, Length: c.Length}, c.DataBytes())
	if op.call == nil {
		op.call = new(programCall)
	}
	op.call.Call, op.call.reduction = c, nil
	ok, err := s.admit(op, wire.SaturatingAdd(c.Length, c.Result), c.WorkBytes(), c.DataBytes(), c.Length-uint64(s.reader.Remaining))
	if !ok {
		return err
	}
	if err := s.readPayload(op); err != nil {
		return err
	}
	s.startOrQueue(op)
	return nil
}

// postCall posts a call, whose payload must be complete, to the rank.
func (s *session) postCall(op *operation) (mpe.Op, error) {
	c, x := &op.call.Call, &s.posting
	defer func() { s.posting = collective.Operation{} }()
	*x = collective.Operation{
		Call: c.CollCall(), Comm: c.Comm, Tag: int(c.Tag), Op: c.Op, Type: c.Type,
		Datatype: c.Datatype, AnyDatatype: c.Flags&wire.FlagAnyDatatype != 0,
	}
	if c.Comm == 0 {
		return nil, c.CallError("it is in communicator 0, which is for point-to-point messages: use another " +
			"communicator for calls")
	}
	if c.Tag < 1 || c.Tag > collective.Tags {
		return nil, c.CallError("its tag is %d: number the calls of a communicator from 1 to %d", c.Tag, collective.Tags)
	}
	if size := s.dev.Size(); c.Ranks == 0 || int64(c.Ranks) > int64(size) {
		return nil, c.CallError("the world has %d ranks, and the communicator %d", size, c.Ranks)
	}
	length := int(c.DescriptionLen())
	listed, name, ints, ok := c.ReadDescription(op.Buf[:length], &x.Call, op.call.layoutInts[:0])
	if op.call.layoutInts = ints; !ok {
		return nil, c.CallError("the unused end of its description is not zero")
	}
	if a := coll.Named(c.Collective, string(name)); a != nil {
		x.Algorithm = a.Name // a constant string, so this does not allocate
	} else {
		x.Algorithm = string(name)
	}
	if err := x.Call.Check(); err != nil {
		return nil, err
	}
	m := wire.ShapeOf(&x.Call)
	if given := len(op.Buf) - length; given != m.Payload || c.Result != uint64(m.Result) {
		return nil, c.CallError("its payload has %d bytes and its result %d, but rank %d gives %d and gets %d", given,
			c.Result, c.Rank, m.Payload, m.Result)
	}
	members, err := s.members(c, listed)
	if err != nil {
		return nil, err
	}
	x.Members = members
	if op.call.reduction, err = newReduction(s, c, x); err != nil {
		return nil, err
	}
	op.setBuffers(x, length, m)
	return s.dev.StartCollective(x)
}

// setBuffers sets the buffers of a call and the part of them that the operation returns to the program. The payload
// follows the call's description in memory; lay uses it there or copies it into the receive buffer.
func (op *operation) setBuffers(x *collective.Operation, description int, m wire.Shape) {
	payload := description + m.Payload
	whole := m.InRecv && m.Payload == m.Recv // the payload fills the whole receive buffer
	given, begin := op.memory[description:payload:payload], payload
	switch {
	case whole:
		begin = description
	case m.Recv > 0:
		begin = (payload + wire.AlignLen - 1) / wire.AlignLen * wire.AlignLen
	}
	x.Recv = op.memory[begin : begin+m.Recv : begin+m.Recv]
	op.Buf = x.Recv[:m.Result]
	if !m.InRecv {
		x.Send = given
	} else if !whole {
		copy(x.Recv[m.Offset:], given)
	}
}

// commCache caches the members of the communicators in which a program has made calls. The rank may use these
// slices even after a call has ended.
type commCache struct {
	world  []int
	byComm map[uint32]commMembers
}

type commMembers struct {
	// listed is the list of members in the form of the frame, or nil.
	listed  []byte
	members []int
}

// maxCommBytes is the maximum memory charged for a program's communicators, in bytes. Each communicator is charged
// commCost, plus commMemberCost for each listed member.
const (
	maxCommBytes   = 16 << 20
	commCost       = 512
	commMemberCost = 12
)

// members returns the members of a call's communicator: the listed members or, without a list, all ranks of the
// world. It caches the result as long as the program is attached.
func (s *session) members(c *wire.Call, listed []byte) ([]int, error) {
	g := &s.groups
	known, ok := g.byComm[c.Comm]
	if ok && bytes.Equal(known.listed, listed) && len(known.members) == int(c.Ranks) {
		return known.members, nil
	}
	members, cost := g.world, int64(commCost)
	if listed != nil {
		cost += commMemberCost * int64(c.Ranks)
		var err error
		if members, err = readMembers(c, listed, s.dev.Size()); err != nil {
			return nil, err
		}
	} else {
		if members == nil {
			for rank := range s.dev.Size() {
				members = append(members, rank)
			}
			g.world = members
		}
		if len(members) != int(c.Ranks) {
			return nil, c.CallError("the world has %d ranks, and the communicator %d: list them", len(members), c.Ranks)
		}
	}
	if !s.chargeMembers(cost) {
		return nil, fmt.Errorf("rank %d: %w: the communicators of a program's calls may take at most %d bytes", s.rank,
			mpe.ErrFull, maxCommBytes)
	}
	if g.byComm == nil {
		g.byComm = make(map[uint32]commMembers)
	}
	g.byComm[c.Comm] = commMembers{listed: bytes.Clone(listed), members: members}
	return members, nil
}

// readMembers decodes a list of members. ranks is the number of ranks in the world. No member may be listed
// twice.
func readMembers(c *wire.Call, listed []byte, ranks int) ([]int, error) {
	members, seen := make([]int, c.Ranks), make([]bool, ranks)
	for i := range members {
		rank := wire.Order.Uint32(listed[wire.MemberLen*i:])
		if int64(rank) >= int64(len(seen)) {
			return nil, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, mpe.ErrRank, len(seen)-1)
		}
		if seen[rank] {
			return nil, c.CallError("rank %d of the world is listed twice in the communicator", rank)
		}
		seen[rank], members[i] = true, int(rank)
	}
	return members, nil
}
