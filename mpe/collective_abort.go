package mpe

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// A rank whose call fails sends an abort of it to all other members of the communicator, so
// that none of them waits for it forever. A rank whose call is ended by an abort sends none:
// the sender of the abort has sent it to all members. So a call that fails on one rank costs
// one small message per other rank, and at most one for each two ranks if it fails on all of
// them independently.
//
// An abort must not end another call of the same number: programs that use a rank one after
// another number their communicators and calls in the same way. So when the members agree
// how to choose algorithms, the first of them also gives the communicator a random epoch,
// which aborts carry. A call that fails before is aborted without an epoch, which concerns
// only members that have not agreed either, and again when they have.

// FailureCause is why a rank has abandoned a collective call.
type FailureCause uint8

// The causes. Their numbers are those of the wire (E51).
const (
	// CauseOther: see the error on that rank.
	CauseOther FailureCause = iota
	// CauseTimeout: its caller's deadline has passed.
	CauseTimeout
	// CauseCancelled: its caller, or the program, has abandoned it.
	CauseCancelled
	// CauseMismatch: another rank has made another call.
	CauseMismatch
	// CauseTruncated: a message was longer than its call says.
	CauseTruncated
	// CausePeerLost: it has lost another rank.
	CausePeerLost
	// CauseClosing: it shuts down.
	CauseClosing
	numCauses
)

var causeTexts = [numCauses]string{
	"it has failed there", "its deadline expired", "it was cancelled", "not all ranks have made the same call",
	"a message was longer than the call says", "another rank was lost", "the rank shuts down",
}

// String says it in a few words.
func (c FailureCause) String() string {
	if c >= numCauses {
		c = CauseOther
	}
	return causeTexts[c]
}

// causes say which errors are what, the first that fits.
var causes = []struct {
	err   error
	cause FailureCause
}{
	{ErrClosed, CauseClosing},
	{ErrMismatch, CauseMismatch},
	{ErrTruncated, CauseTruncated},
	{extended.ErrTimeout, CausePeerLost},
	{extended.ErrSession, CausePeerLost},
	{handshake.ErrTimeout, CausePeerLost},
	{context.DeadlineExceeded, CauseTimeout},
	{context.Canceled, CauseCancelled},
	{ErrCancelled, CauseCancelled},
}

func causeOf(err error) FailureCause {
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return c.cause
		}
	}
	var wait *WaitError
	if errors.As(err, &wait) { // a context may end for whatever its owner likes
		return CauseCancelled
	}
	return CauseOther
}

// abortMsg is the abort of a call.
type abortMsg struct {
	// rank is the sender, in the world.
	rank       int
	epoch      uint64
	comm       uint32
	number     int
	collective coll.Collective
	cause      FailureCause
}

// abortLen is the length of an abort on the wire, in bytes. No other report has it.
const abortLen = 20

func (f *abortMsg) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, abortLen), f.epoch)
	b = binary.LittleEndian.AppendUint32(b, f.comm)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.number))
	return append(b, byte(f.collective), byte(f.cause), 0, 0)
}

func decodeAbort(rank int, b []byte) abortMsg {
	return abortMsg{
		rank: rank, epoch: binary.LittleEndian.Uint64(b), comm: binary.LittleEndian.Uint32(b[8:]),
		number: int(binary.LittleEndian.Uint32(b[12:])), collective: coll.Collective(b[16]), cause: FailureCause(b[17]),
	}
}

// sendAbort sends an abort to the other members of the communicator of a call that has
// failed here with err.
func (x *collectiveOp) sendAbort(err error) {
	e := x.e
	if x.aborted || x.r == nil || x.limits.ByOrder || x.Call.Ranks == 1 || e.state == closed || errors.Is(err, extended.ErrAborted) {
		return // the rank that aborted the message has aborted the call
	}
	f := abortMsg{rank: e.rank, epoch: x.epoch(), comm: x.Comm, number: x.Tag, collective: x.Call.Collective, cause: x.cause}
	if f.cause == CauseOther {
		f.cause = causeOf(err)
	}
	e.sendAborts(x.Members, &f)
	if a := e.agreements[x.Comm]; a != nil && !a.done && len(a.unsentAborts) < maxAborts {
		a.unsentAborts = append(a.unsentAborts, f)
	}
}

// sendAborts sends an abort to all members. An abort is also a report of the status, which
// is unchanged: engines that know only these take it for one.
func (e *core) sendAborts(members []int, f *abortMsg) {
	text := f.encode()
	for _, rank := range members {
		if p := e.peers[rank]; rank != e.rank {
			p.sendInternal(statusComm, uint32(p.reported), text, nil)
		}
	}
}

// newEpoch returns the epoch of communicators whose first member this rank is.
func (e *core) newEpoch() uint64 {
	if e.commEpoch == 0 {
		e.commEpoch = e.driver.random()%maxEpoch + 1
	}
	return e.commEpoch
}

// maxEpoch: an epoch has 63 bits, as it is sent beside a flag.
const maxEpoch = 1<<63 - 1

// epoch returns that of the call's communicator, or 0 if the members have not agreed on one.
func (x *collectiveOp) epoch() uint64 {
	if a := x.agreement(); a != nil {
		return a.epoch
	}
	return 0
}

// agreement is that of the call's communicator, if there is one.
func (x *collectiveOp) agreement() *agreement {
	if x.agreed != nil {
		return x.agreed
	}
	return x.e.agreements[x.Comm]
}
