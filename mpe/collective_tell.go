package mpe

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// A rank whose call fails tells all other members of the communicator, so that nobody
// waits for it for ever. Who fails because he was told does not tell again: the one who
// told him has told everybody. So a call that fails on one rank costs one small message
// per other rank, and at most one for each two ranks if it fails everywhere by itself.
//
// What is told must not hit another call of the same number: programs that a rank runs
// one after another number their communicators and calls alike. So when the members
// agree how to choose algorithms, the first of them also gives the communicator a random
// life, and what is told bears it. A call that fails before is told without, which
// concerns nobody but those who have not agreed either; and again when they have.

// FailureCause says in a word why a rank has given up a collective call.
type FailureCause uint8

// The causes. Their numbers are those of the wire (E51).
const (
	// CauseOther: see the error on that rank.
	CauseOther FailureCause = iota
	// CauseTimeout: its caller's deadline has passed.
	CauseTimeout
	// CauseCancelled: its caller, or the program, has given it up.
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
	"it has failed there", "the time for it was up", "it was cancelled", "not all ranks have made the same call",
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

// failure is what is told of a call that has failed.
type failure struct {
	// rank is that of the world which tells it.
	rank       int
	life       uint64
	comm       uint32
	number     int
	collective coll.Collective
	cause      FailureCause
}

// failureLen is the length of a failure on the wire, and no other report's.
const failureLen = 20

func (f *failure) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, failureLen), f.life)
	b = binary.LittleEndian.AppendUint32(b, f.comm)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.number))
	return append(b, byte(f.collective), byte(f.cause), 0, 0)
}

func decodeFailure(rank int, b []byte) failure {
	return failure{
		rank: rank, life: binary.LittleEndian.Uint64(b), comm: binary.LittleEndian.Uint32(b[8:]),
		number: int(binary.LittleEndian.Uint32(b[12:])), collective: coll.Collective(b[16]), cause: FailureCause(b[17]),
	}
}

// tell tells the other members of a call's communicator that it has failed here.
func (x *calling) tell(err error) {
	e := x.e
	if x.told || x.r == nil || x.limits.ByOrder || x.Call.Ranks == 1 || e.state == closed || errors.Is(err, extended.ErrAborted) {
		return // what was aborted, the one who gave up tells
	}
	f := failure{rank: e.rank, life: x.life(), comm: x.Comm, number: x.Tag, collective: x.Call.Collective, cause: x.cause}
	if f.cause == CauseOther {
		f.cause = causeOf(err)
	}
	e.tellMembers(x.Members, &f)
	if a := e.agreements[x.Comm]; a != nil && !a.done && len(a.untold) < maxFailures {
		a.untold = append(a.untold, f)
	}
}

// tellMembers tells all of them. A report of a call that has failed is one of the
// status, too, which is as it was: engines that know no other take it for that.
func (e *Engine) tellMembers(members []int, f *failure) {
	text := f.encode()
	for _, rank := range members {
		if p := e.peers[rank]; rank != e.rank {
			p.sendInternal(statusComm, uint32(p.told), text, nil)
		}
	}
}

// newLife is what communicators whose first member this rank is are given.
func (e *Engine) newLife() uint64 {
	if e.life == 0 {
		e.life = rand.Uint64N(maxLife) + 1
	}
	return e.life
}

// maxLife: a life has 63 bits, as it travels beside a flag.
const maxLife = 1<<63 - 1

// life is that of the call's communicator, or 0 if the members have none in common yet.
func (x *calling) life() uint64 {
	if a := x.agreement(); a != nil {
		return a.life
	}
	return 0
}

// agreement is that of the call's communicator, if there is one.
func (x *calling) agreement() *agreement {
	if x.agreed != nil {
		return x.agreed
	}
	return x.e.agreements[x.Comm]
}

// tellingTime is for how long Close waits for others to be told, if nothing else is under
// way: some may not be there.
const tellingTime = 250 * time.Millisecond

// forgo has Close wait no longer for ranks that do not take what they are told.
func (e *Engine) forgo() {
	e.lock()
	defer e.unlock()
	if e.state == draining {
		e.forgone = true
		e.flush()
	}
}
