package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// sentinels are the errors whose identity crosses the socket; the index is the
// number of the bit in a set of them. New ones are appended, and the numbers of
// old ones never change: docs/attach.md has them.
var sentinels = [...]struct {
	name string
	err  error
}{
	{"mpe.ErrClosed", mpe.ErrClosed},
	{"mpe.ErrRank", mpe.ErrRank},
	{"handshake.ErrLength", handshake.ErrLength},
	{"handshake.ErrTag", handshake.ErrTag},
	{"mpe.ErrComm", mpe.ErrComm},
	{"mpe.ErrWildcard", mpe.ErrWildcard},
	{"mpe.ErrCancelled", mpe.ErrCancelled},
	{"mpe.ErrFull", mpe.ErrFull},
	{"handshake.ErrTimeout", handshake.ErrTimeout},
	{"handshake.ErrPartial", handshake.ErrPartial},
	{"handshake.ErrEmpty", handshake.ErrEmpty},
	{"handshake.ErrTooLong", handshake.ErrTooLong},
	{"handshake.ErrBusy", handshake.ErrBusy},
	{"handshake.ErrTruncated", handshake.ErrTruncated},
	{"handshake.ErrRemote", handshake.ErrRemote},
	{"context.Canceled", context.Canceled},
	{"context.DeadlineExceeded", context.DeadlineExceeded},
	{"mpe.ErrTransportClosed", mpe.ErrTransportClosed},
	{"extended.ErrTimeout", extended.ErrTimeout},
	{"extended.ErrSession", extended.ErrSession},
	{"extended.ErrRemote", extended.ErrRemote},
	{"extended.ErrCanceled", extended.ErrCanceled},
	{"extended.ErrInvalid", extended.ErrInvalid},
	{"collective.ErrMismatch", collective.ErrMismatch},
	{"coll.ErrCall", coll.ErrCall},
	{"op.ErrUndefined", op.ErrUndefined},
	{"extended.ErrAborted", extended.ErrAborted},
	{"collective.ErrCallFailed", collective.ErrCallFailed},
	{"mpe.ErrPeerLost", mpe.ErrPeerLost},
	{"handshake.ErrDeadEnd", handshake.ErrDeadEnd},
	{"handshake.ErrRestart", handshake.ErrRestart},
}

// sentinelSet returns the set of those that err is.
func sentinelSet(err error) (set uint64) {
	for i := range sentinels {
		if errors.Is(err, sentinels[i].err) {
			set |= 1 << i
		}
	}
	return set
}

// Error is an error of the daemon's rank, as it came over the socket. It is
// what it was there for errors.Is, and for errors.As with *mpe.WaitError,
// *mpe.PeerLostError, *collective.StepError, *collective.CallFailedError, *coll.CallError and the error types of package handshake.
type Error struct {
	Text  string
	Set   uint64
	Parts []error
}

// Error returns the text of the daemon's error.
func (e *Error) Error() string { return e.Text }

// Is reports whether the error was the target at the daemon.
func (e *Error) Is(target error) bool {
	for i := range sentinels {
		if e.Set&(1<<i) != 0 && target == sentinels[i].err {
			return true
		}
	}
	return false
}

// Unwrap returns the structured errors in it.
func (e *Error) Unwrap() []error { return e.Parts }

// Reason is why a program was refused or disconnected.
type Reason uint16

// The reasons of REFUSED.
const (
	// Violation: a frame broke the rules of the protocol.
	Violation Reason = 1 + iota
	// WrongVersion: the daemon speaks another version.
	WrongVersion
	// NoRank: the daemon offers no such rank.
	NoRank
	// Busy: another program has the rank.
	Busy
	// Permission: the program's user and groups may not attach, or not to this rank.
	Permission
	// Closing: the daemon is shutting down.
	Closing
	// Late: HELLO did not come in time.
	Late
	// Failed: anything else on the daemon's side.
	Failed
	numReasons
)

var reasonNames = [numReasons]string{"", "violation", "version", "no rank", "busy", "permission", "closing", "late", "failed"}

// String returns the name that the specification uses.
func (r Reason) String() string {
	if r > 0 && r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint16(r))
}

// ErrBusy: another program has the rank.
var ErrBusy = errors.New("another program has the rank")

// RefusedError: the daemon refused the program, or disconnected it.
type RefusedError struct {
	Reason Reason
	// Text is what the daemon says.
	Text string
}

// Error returns the daemon's text.
func (e *RefusedError) Error() string { return "zrlmpid: " + e.Text }

// Is makes the error mpe.ErrRank, ErrBusy, fs.ErrPermission or mpe.ErrClosed,
// by its reason.
func (e *RefusedError) Is(target error) bool {
	switch e.Reason {
	case NoRank:
		return target == mpe.ErrRank
	case Busy:
		return target == ErrBusy
	case Permission:
		return target == fs.ErrPermission
	case Closing:
		return target == mpe.ErrClosed
	}
	return false
}

func Refuse(reason Reason, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

func RefusedFrame(e *RefusedError) []byte {
	text := Clip(e.Text)
	b := AppendHeader(nil, FrameRefused, 2+len(text))
	return append(Order.AppendUint16(b, uint16(e.Reason)), text...)
}

// IsRefusal reports whether an answer, of which b is the beginning, is REFUSED: the socket is one by which programs
// attach to ranks.
func IsRefusal(b []byte) bool {
	return len(b) >= FrameHeaderLen && string(b[4:FrameHeaderLen]) == string([]byte{byte(FrameRefused), 0, 0, 0}) &&
		Order.Uint32(b) <= 2+MaxText
}

// readRefused returns the error that REFUSED is, or another one.
func (r *Reader) ReadRefused() error {
	b, err := r.Take(2)
	if err != nil {
		return err
	}
	e := &RefusedError{Reason: Reason(Order.Uint16(b))}
	if e.Text, err = r.Text(); err != nil {
		return err
	}
	return e
}
