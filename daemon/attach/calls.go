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
	// reduction is non-nil for a posted call whose reduction operation is a function that only the program can execute.
	reduction *reduction
}

// readCall handles CALL. It starts or queues the call, which waits until its payload is complete.
func (s *session) readCall() error {
	call, err := s.reader.ReadCall()
	if err != nil {
		return err
	}
	op := s.operation(wire.Start{ID: call.ID, Operation: mpe.Operation{Kind: wire.OpCall}, Length: call.Length},
		call.DataBytes())
	if op.call == nil {
		op.call = new(programCall)
	}
	op.call.Call, op.call.reduction = call, nil
	ok, err := s.admit(op, wire.SaturatingAdd(call.Length, call.Result), call.WorkBytes(), call.DataBytes(),
		call.Length-uint64(s.reader.Remaining))
	if !ok {
		return err
	}
	if err := s.readPayload(op); err != nil {
		return err
	}
	s.startOrQueue(op)
	return nil
}

// postCall posts a call to the rank. The call's payload must be complete.
func (s *session) postCall(op *operation) (mpe.Op, error) {
	call, x := &op.call.Call, &s.posting
	defer func() { s.posting = collective.Operation{} }()
	*x = collective.Operation{
		Call: call.CollCall(), Comm: call.Comm, Tag: int(call.Tag), Op: call.Op, Type: call.Type,
		Datatype: call.Datatype, AnyDatatype: call.Flags&wire.FlagAnyDatatype != 0,
	}
	if call.Comm == 0 {
		return nil, call.CallError("it is in communicator 0, which is for point-to-point messages: use another " +
			"communicator for calls")
	}
	if call.Tag < 1 || call.Tag > collective.Tags {
		return nil, call.CallError("its tag is %d: number the calls of a communicator from 1 to %d", call.Tag,
			collective.Tags)
	}
	if size := s.dev.Size(); call.Ranks == 0 || int64(call.Ranks) > int64(size) {
		return nil, call.CallError("the world has %d ranks, and the communicator %d", size, call.Ranks)
	}
	length := int(call.DescriptionLen())
	listed, name, ints, ok := call.ReadDescription(op.Buf[:length], &x.Call, op.call.layoutInts[:0])
	if op.call.layoutInts = ints; !ok {
		return nil, call.CallError("the unused end of its description is not zero")
	}
	if a := coll.Named(call.Collective, string(name)); a != nil {
		x.Algorithm = a.Name // a constant string, so this does not allocate
	} else {
		x.Algorithm = string(name)
	}
	if err := x.Call.Check(); err != nil {
		return nil, err
	}
	shape := wire.ShapeOf(&x.Call)
	if given := len(op.Buf) - length; given != shape.Payload || call.Result != uint64(shape.Result) {
		return nil, call.CallError("its payload has %d bytes and its result %d, but rank %d gives %d and gets %d", given,
			call.Result, call.Rank, shape.Payload, shape.Result)
	}
	members, err := s.members(call, listed)
	if err != nil {
		return nil, err
	}
	x.Members = members
	if op.call.reduction, err = newReduction(s, call, x); err != nil {
		return nil, err
	}
	op.setBuffers(x, length, shape)
	return s.dev.StartCollective(x)
}

// setBuffers sets the buffers of a call and the part of them that the operation returns to the program. In memory, the
// payload follows the call's description; lay uses it in place or copies it into the receive buffer.
func (op *operation) setBuffers(x *collective.Operation, description int, shape wire.Shape) {
	payload := description + shape.Payload
	whole := shape.InRecv && shape.Payload == shape.Recv // the payload fills the whole receive buffer
	given, begin := op.memory[description:payload:payload], payload
	switch {
	case whole:
		begin = description
	case shape.Recv > 0:
		begin = (payload + wire.AlignLen - 1) / wire.AlignLen * wire.AlignLen
	}
	x.Recv = op.memory[begin : begin+shape.Recv : begin+shape.Recv]
	op.Buf = x.Recv[:shape.Result]
	if !shape.InRecv {
		x.Send = given
	} else if !whole {
		copy(x.Recv[shape.Offset:], given)
	}
}

// commCache caches the members of communicators used by the program's calls. The rank may still use the slices after a
// call has completed.
type commCache struct {
	world  []int
	byComm map[uint32]commMembers
}

// commMembers caches the members of one communicator. A program may free a communicator and give its number to another
// one, so an entry counts only if the list in the frame is the same.
type commMembers struct {
	// listed is the list of members as encoded in the CALL frame. It is nil if the frame contained no list.
	listed  []byte
	members []int
}

// maxCommBytes is the maximum number of bytes charged to one program for its communicators. Each communicator costs
// commCost, plus commMemberCost for each listed member.
const (
	maxCommBytes   = 16 << 20
	commCost       = 512
	commMemberCost = 12
)

// members returns the members of a call's communicator: the listed members, or all ranks of the world if there is no
// list. It caches the result until the session ends.
func (s *session) members(call *wire.Call, listed []byte) ([]int, error) {
	cache := &s.groups
	known, ok := cache.byComm[call.Comm]
	if ok && bytes.Equal(known.listed, listed) && len(known.members) == int(call.Ranks) {
		return known.members, nil
	}
	members, cost := cache.world, int64(commCost)
	if listed != nil {
		cost += commMemberCost * int64(call.Ranks)
		var err error
		if members, err = readMembers(call, listed, s.dev.Size()); err != nil {
			return nil, err
		}
	} else {
		if members == nil {
			for rank := range s.dev.Size() {
				members = append(members, rank)
			}
			cache.world = members
		}
		if len(members) != int(call.Ranks) {
			return nil, call.CallError("the world has %d ranks, and the communicator %d: list them", len(members), call.Ranks)
		}
	}
	if !s.chargeMembers(cost) {
		return nil, fmt.Errorf("rank %d: %w: the communicators of a program's calls may take at most %d bytes", s.rank,
			mpe.ErrFull, maxCommBytes)
	}
	if cache.byComm == nil {
		cache.byComm = make(map[uint32]commMembers)
	}
	cache.byComm[call.Comm] = commMembers{listed: bytes.Clone(listed), members: members}
	return members, nil
}

// readMembers decodes a list of members. ranks is the number of ranks in the world. readMembers rejects duplicates.
func readMembers(call *wire.Call, listed []byte, ranks int) ([]int, error) {
	members, seen := make([]int, call.Ranks), make([]bool, ranks)
	for i := range members {
		rank := wire.Order.Uint32(listed[wire.MemberLen*i:])
		if int64(rank) >= int64(len(seen)) {
			return nil, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, mpe.ErrRank, len(seen)-1)
		}
		if seen[rank] {
			return nil, call.CallError("rank %d of the world is listed twice in the communicator", rank)
		}
		seen[rank], members[i] = true, int(rank)
	}
	return members, nil
}
