package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

var errNoNumbers = errors.New("a member has used up the numbers of communicators: start the program again, and make " +
	"fewer of them")

// Tags of the library's own messages. Collective calls use lower tags.
const (
	// tagAgree is the base of tags for messages of Dup and Split. Their lower bits hold the number of the call.
	tagAgree = collective.Tags + 1
	// tagRound is the base of tags for messages of rounds. Their lower bits hold the number of the round.
	tagRound = tagAgree | tagAgree>>1
	// tagCreate is the base of tags for messages of Create. Their lower bits hold the caller's tag.
	tagCreate = 1 << 30
)

// agreement is an exchange between the members of a new communicator. All members send to the first member (the root),
// which answers each of them.
type agreement struct {
	call    call
	dev     mpe.Device
	members []int // ranks of the world
	myIndex int   // index of the calling rank
	// comm and tag keep the messages apart from messages of the program and of other agreements. Until the members have
	// agreed, only the number of the parent communicator is available.
	comm uint32
	tag  int
}

// ballot is the contribution of one member.
type ballot struct {
	proposal   uint32
	color, key int64
}

const ballotLen = 4 + 8 + 8

func (v ballot) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, v.proposal)
	b = binary.LittleEndian.AppendUint64(b, uint64(v.color))
	return binary.LittleEndian.AppendUint64(b, uint64(v.key))
}

func decodeBallot(b []byte) ballot {
	return ballot{
		proposal: binary.LittleEndian.Uint32(b),
		color:    int64(binary.LittleEndian.Uint64(b[4:])),
		key:      int64(binary.LittleEndian.Uint64(b[12:])),
	}
}

// run makes the members agree on a number. It returns that number and the ballots of all members.
func (a *agreement) run(ctx context.Context, n *numbers, color, key int) (uint32, []ballot, error) {
	return a.runWith(ctx, len(a.members), a.exchange, n, color, key)
}

// runWith is like run, for any number of members. It collects their parts by calling the function exchange.
func (a *agreement) runWith(ctx context.Context, members int, exchange func(context.Context, []byte) ([]byte, error),
	n *numbers, color, key int) (uint32, []ballot, error) {
	n.begin()
	defer n.end()
	for attempt := 0; ; attempt++ {
		mine := ballot{proposal: n.propose(attempt), color: int64(color), key: int64(key)}
		all, err := exchange(ctx, mine.append(nil))
		if err != nil {
			return 0, nil, err
		}
		ballots := make([]ballot, members)
		var number uint32
		for i := range ballots {
			ballots[i] = decodeBallot(all[i*ballotLen:])
			number = max(number, ballots[i].proposal)
		}
		if number == noNumber {
			return 0, nil, a.refusalError(ballots)
		}
		claimed := []byte{0, 0, 0, 0} // one word: all internal messages have whole words
		if n.claim(number) {
			claimed[0] = 1
		}
		if all, err = exchange(ctx, claimed); err != nil {
			return 0, nil, err
		}
		unanimous := true
		for i := range members {
			unanimous = unanimous && all[i*len(claimed)] == 1
		}
		if unanimous {
			return number, ballots, nil
		}
	}
}

// refusedColor is the color in the ballot of a member that rejects the call. Such a ballot holds the error class as its
// key and noNumber as its proposal.
const refusedColor = math.MinInt64

var errRefused = errors.New("an argument is wrong there")

// refusalError returns the error of an agreement that failed because a member did not propose a number.
func (a *agreement) refusalError(ballots []ballot) error {
	for i, v := range ballots {
		if v.proposal == noNumber && v.color == refusedColor {
			class := Class(v.key)
			if class <= Success || class > ErrPending {
				class = ErrOther
			}
			return a.call.failf(class, "rank %d of the world rejected the call: %w", a.members[i], errRefused)
		}
	}
	return a.call.error(ErrIntern, errNoNumbers)
}

// refuse makes the agreement fail on the other members, without waiting for them.
func (a *agreement) refuse(class Class) {
	mine := ballot{proposal: noNumber, color: refusedColor, key: int64(class)}.append(nil)
	all := make([]byte, len(mine)*len(a.members))
	copy(all[a.myIndex*len(mine):], mine)
	var list []mpe.Operation
	if a.myIndex != 0 {
		list = append(list, a.newOperation(mpe.OpSendSync, 0, mine), a.newOperation(mpe.OpRecv, 0, all))
	} else {
		for i := 1; i < len(a.members); i++ {
			list = append(list, a.newOperation(mpe.OpRecv, i, make([]byte, len(mine))),
				a.newOperation(mpe.OpSendSync, i, all))
		}
	}
	for _, o := range list {
		if op, err := a.dev.Start(o); err == nil { // if it fails, the other rank is gone
			a.call.comm.proc.freedOps.add(op)
		}
	}
}

// exchange collects parts of equal length from all members and returns them in member order on every member. It uses
// synchronous sends because they can be cancelled: a program that ends during the exchange leaves no message for the
// next program on this rank.
func (a *agreement) exchange(ctx context.Context, part []byte) ([]byte, error) {
	all := make([]byte, len(part)*len(a.members))
	if a.myIndex != 0 {
		if err := a.runAll(ctx, a.newOperation(mpe.OpSendSync, 0, part)); err != nil {
			return nil, err
		}
		return all, a.runAll(ctx, a.newOperation(mpe.OpRecv, 0, all))
	}
	copy(all, part)
	var gather, answer []mpe.Operation
	for i := 1; i < len(a.members); i++ {
		gather = append(gather, a.newOperation(mpe.OpRecv, i, all[i*len(part):(i+1)*len(part)]))
		answer = append(answer, a.newOperation(mpe.OpSendSync, i, all))
	}
	if err := a.runAll(ctx, gather...); err != nil {
		return nil, err
	}
	return all, a.runAll(ctx, answer...)
}

func (a *agreement) newOperation(kind mpe.OpKind, member int, buf []byte) mpe.Operation {
	return mpe.Operation{Kind: kind, Peer: a.members[member], Tag: a.tag, Comm: a.comm, Buf: buf}
}

// runAll starts operations and waits for them. If one fails, runAll cancels the operations after it.
func (a *agreement) runAll(ctx context.Context, operations ...mpe.Operation) error {
	var ops []mpe.Op
	var failed error
	for _, o := range operations {
		op, err := a.dev.Start(o)
		if err != nil {
			failed = a.call.fail(err)
			break
		}
		ops = append(ops, op)
	}
	for i, op := range ops {
		if failed != nil {
			op.Cancel()
		}
		st, err := op.Await(ctx)
		switch {
		case failed != nil: // report the first failure
		case err != nil:
			failed = a.call.fail(err)
		case operations[i].Kind == mpe.OpRecv && st.Bytes != int64(len(operations[i].Buf)):
			failed = a.call.failf(ErrIntern, "rank %d of the world sent %d bytes where %d belong: not all members "+
				"made the same call, or they run different versions",
				operations[i].Peer, st.Bytes, len(operations[i].Buf))
		}
		op.Free()
	}
	return failed
}
