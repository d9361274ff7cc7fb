package collective

import (
	"encoding/binary"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// A rank whose call fails sends an abort to all other members of the communicator, so that no member waits for the rank
// forever. A member whose call ends because of an abort sends no abort, because the first sender has already notified
// all members. A call that fails on one rank therefore costs one small message per other rank, and a call that fails on
// all ranks independently at most one per ordered pair of ranks.
//
// An abort must not end another call with the same number: successive programs on a rank use the same numbers for their
// communicators and calls. Therefore, when the members agree how to choose algorithms, the first member also gives the
// communicator a random epoch, which aborts carry. If a call fails before the members have agreed, its abort has no
// epoch, and concerns only members that have not agreed either. Its sender, and every member whose call it ended, sends
// the abort again with the epoch once they have agreed; the sender alone might no longer exist by then.
//
// The members of a communicator with peers whose profile carries no communicators, such as FPGAs, do not agree, so
// their aborts carry no epoch. These aborts concern calls in progress, and the next calls of a program that has already
// made a call. The peers without communicators receive no aborts, because their profile has no message for it.

// abortMsg is an abort of a call.
type abortMsg struct {
	// rank is the world rank whose call failed. sender is the world rank that sent the abort: the same rank, or one
	// whose call ended because of the abort.
	rank, sender int
	// epoch is 0 if the members had not agreed on one when the abort was sent. number is the Tag of the call.
	epoch      uint64
	comm       uint32
	number     int
	collective coll.Collective
	cause      FailureCause
}

// abortLen is the length in bytes of an abort on the wire. This length distinguishes an abort from other messages in
// statusComm.
const abortLen = 20

// encode returns the abort as on the wire. The last two bytes are rank + 1, or 0 if the sender is the rank that failed.
func (f *abortMsg) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, abortLen), f.epoch)
	b = binary.LittleEndian.AppendUint32(b, f.comm)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.number))
	b = append(b, byte(f.collective), byte(f.cause))
	if f.rank == f.sender {
		return append(b, 0, 0)
	}
	return binary.LittleEndian.AppendUint16(b, uint16(f.rank+1))
}

// Retractable reports whether the payload of a message in statusComm is an abort without an epoch.
func Retractable(payload []byte) bool {
	return len(payload) == abortLen && decodeAbort(0, payload).epoch == 0
}

// decodeAbort is the inverse of encode, for abortLen bytes from the given sender.
func decodeAbort(sender int, b []byte) abortMsg {
	msg := abortMsg{
		rank: sender, sender: sender, epoch: binary.LittleEndian.Uint64(b), comm: binary.LittleEndian.Uint32(b[8:]),
		number: int(binary.LittleEndian.Uint32(b[12:])), collective: coll.Collective(b[16]), cause: FailureCause(b[17]),
	}
	if rank := int(binary.LittleEndian.Uint16(b[18:])); rank > 0 {
		msg.rank = rank - 1
	}
	return msg
}

// sendAbort aborts the call on the other members of its communicator, because the call failed on this rank with err.
func (x *Execution) sendAbort(err error) {
	executor := x.executor
	if x.aborted || x.Request == nil || x.Call.Ranks == 1 {
		return
	}
	self := executor.engine.Rank()
	msg := abortMsg{rank: self, sender: self, epoch: x.epoch(), comm: x.Comm, number: x.Tag,
		collective: x.Call.Collective, cause: x.cause}
	if msg.cause == CauseOther {
		msg.cause = executor.engine.CauseOf(err)
	}
	executor.sendAborts(x.Members, &msg)
	x.sendLater(&msg)
}

// Refuse aborts a call on the other members, because this rank rejects an invalid argument of the call and therefore
// does not make it. It is a no-op if the profile of any member carries no communicators, because such members cannot be
// notified.
func (e *Executor) Refuse(operation *Operation, cause FailureCause) {
	exec := &Execution{execution: execution{Operation: *operation, executor: e}}
	limits, err := exec.checkMembers(e.engine)
	if err != nil || limits.ByOrder || operation.Call.Ranks == 1 {
		return
	}
	a := e.agreements[operation.Comm]
	if a == nil { // the other members cannot agree without this rank
		a = &agreement{comm: operation.Comm, members: slices.Clone(operation.Members)}
		e.agreements[operation.Comm] = a
		e.agree(a, exec)
	}
	a.lastCall = operation.Tag
	self := e.engine.Rank()
	f := abortMsg{rank: self, sender: self, epoch: a.epoch, comm: operation.Comm, number: operation.Tag,
		collective: operation.Call.Collective,
		cause:      cause}
	e.sendAborts(a.members, &f)
	exec.sendLater(&f)
	a.countRejected(&f)
}

// sendLater queues an abort until the members have agreed on the epoch with which it must be sent. It is a no-op if
// they already have.
func (x *Execution) sendLater(f *abortMsg) {
	if a := x.agreement(); a != nil && !a.done && len(a.unsentAborts) < maxAborts {
		a.unsentAborts = append(a.unsentAborts, *f)
	}
}

// sendAborts sends an abort to all other members. Engines that do not know aborts take it for a report of an unchanged
// status.
func (e *Executor) sendAborts(members []int, f *abortMsg) {
	text := f.encode()
	for _, rank := range members {
		if rank != f.sender {
			e.engine.SendInternal(rank, statusComm, uint32(e.ranks[rank].reported), text, nil)
		}
	}
}

// newEpoch returns the epoch for communicators whose first member is this rank. It draws the epoch at random on first
// use.
func (e *Executor) newEpoch() uint64 {
	if e.epoch == 0 {
		e.epoch = e.engine.Random()%maxEpoch + 1
	}
	return e.epoch
}

// maxEpoch is the largest epoch. An epoch has 62 bits, so that it fits in a 64-bit word together with two flags.
const maxEpoch = 1<<62 - 1

// epoch returns the epoch of the call's communicator, or 0 if the members have not agreed on one.
func (x *Execution) epoch() uint64 {
	if a := x.agreement(); a != nil {
		return a.epoch
	}
	return 0
}

// messageTag returns the tag of the call's messages: the call's number, offset by the epoch. The offset prevents the
// call from matching a late message that an earlier program sent with the same call number (E51).
func (x *Execution) messageTag() int {
	epoch := x.epoch()
	if epoch == 0 || x.Tag == agreementTag || x.Tag > Tags {
		return x.Tag
	}
	return 1 + int((epoch+uint64(x.Tag)-1)%Tags)
}

// agreement returns the agreement of the call's communicator, or nil.
func (x *Execution) agreement() *agreement {
	if x.agreed != nil {
		return x.agreed
	}
	return x.executor.agreements[x.Comm]
}
