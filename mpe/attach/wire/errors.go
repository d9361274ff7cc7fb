package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// sentinels are the errors whose identity crosses the socket; the index is the number of the bit in a set of them.
// New ones are appended, and the numbers of old ones never change: docs/attach.md has them.
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

// Error is an error of the daemon, as it came over the socket, or that it makes for a program. It is
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

// Is makes the error mpe.ErrRank, ErrBusy, fs.ErrPermission or mpe.ErrClosed, by its reason.
func (e *RefusedError) Is(target error) bool {
	return target != nil && target == reasonErrors[e.Reason]
}

var reasonErrors = map[Reason]error{NoRank: mpe.ErrRank, Busy: ErrBusy, Permission: fs.ErrPermission, Closing: mpe.ErrClosed}

// Refuse returns a RefusedError.
func Refuse(reason Reason, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// RefusedFrame returns REFUSED.
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

// ReadRefused returns the error that REFUSED is, or another one.
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

// details are the structured errors in an error, as JSON. Those that are errors themselves travel as they are: see plain.
// Errors are rare, so this may be slow.
type details struct {
	Wait           *waitDetails              `json:"wait,omitempty"`
	Truncated      *mpe.TruncatedError       `json:"truncated,omitempty"`
	Lost           *mpe.PeerLostError        `json:"lost,omitempty"`
	TruncatedWords *handshake.TruncatedError `json:"truncated_words,omitempty"`
	Timeout        *handshake.TimeoutError   `json:"timeout,omitempty"`
	Partial        *handshake.PartialError   `json:"partial,omitempty"`
	Remote         *handshake.RemoteError    `json:"remote,omitempty"`
	Restart        *handshake.RestartError   `json:"restart,omitempty"`
	DeadEnd        *deadEndDetails           `json:"dead_end,omitempty"`
	Call           *coll.CallError           `json:"call,omitempty"`
	// Step is that of a collective call which has failed because of the others.
	Step *stepDetails `json:"step,omitempty"`
	// Failed is a collective call that has failed on another rank.
	Failed *collective.CallFailedError `json:"failed,omitempty"`
}

// stepDetails is collective.StepError, whose cause travels as its text and the set of what it is.
type stepDetails struct {
	Collective  coll.Collective
	Algorithm   string
	Number      int
	Kind        coll.Kind
	Peer, Bytes int
	Others      []int `json:",omitempty"`
	Cause       string
	Set         uint64 `json:",omitempty"`
}

// deadEndDetails is handshake.DeadEndError, whose cause travels as its text and the set of what it is.
type deadEndDetails struct {
	Local, Remote uint32
	Cause         string
	Set           uint64 `json:",omitempty"`
}

// maxOthers is how many ranks stepDetails lists at most.
const maxOthers = 1000

// waitDetails is mpe.WaitError, whose network error travels as a text.
type waitDetails struct {
	handshake.Wait
	Queued     int
	InTransfer bool
	Network    string `json:",omitempty"`
}

// maxDetails is the longest details, in bytes. Longer ones are left out.
const maxDetails = 32 << 10

// plain are the fields that are errors.
func (d *details) plain() (fields []reflect.Value) {
	for _, field := range reflect.ValueOf(d).Elem().Fields() {
		if _, ok := field.Interface().(error); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

func detailsOf(err error) (d details) {
	if e, ok := errors.AsType[*mpe.WaitError](err); ok {
		d.Wait = &waitDetails{Wait: e.Wait, Queued: e.Queued, InTransfer: e.InTransfer}
		if e.Network != nil {
			d.Wait.Network = Clip(e.Network.Error())
		}
	}
	for _, field := range d.plain() {
		errors.As(err, field.Addr().Interface())
	}
	if e, ok := errors.AsType[*handshake.DeadEndError](err); ok && e.Cause != nil {
		d.DeadEnd = &deadEndDetails{Local: e.Local, Remote: e.Remote, Cause: Clip(e.Cause.Error()),
			Set: sentinelSet(e.Cause)}
	}
	if e, ok := errors.AsType[*collective.StepError](err); ok && e.Err != nil {
		d.Step = &stepDetails{
			Collective: e.Collective, Algorithm: e.Algorithm, Number: e.Number, Kind: e.Kind, Peer: e.Peer, Bytes: e.Bytes,
			Others: e.Others[:min(len(e.Others), maxOthers)], Cause: Clip(e.Err.Error()), Set: sentinelSet(e.Err),
		}
	}
	return d
}

// errors returns what errors.As is to find.
func (d *details) errors() (list []error) {
	if w := d.Wait; w != nil {
		e := &mpe.WaitError{Wait: w.Wait, Queued: w.Queued, InTransfer: w.InTransfer}
		if w.Network != "" {
			e.Network = errors.New(w.Network)
		}
		list = append(list, e)
	}
	for _, field := range d.plain() {
		if !field.IsNil() {
			list = append(list, field.Interface().(error))
		}
	}
	if e := d.DeadEnd; e != nil {
		list = []error{&handshake.DeadEndError{
			Local: e.Local, Remote: e.Remote, Cause: &Error{Text: e.Cause, Set: e.Set, Parts: list},
		}}
	}
	if s := d.Step; s != nil {
		list = []error{&collective.StepError{
			Collective: s.Collective, Algorithm: s.Algorithm, Number: s.Number, Kind: s.Kind, Peer: s.Peer, Bytes: s.Bytes,
			Others: s.Others, Err: &Error{Text: s.Cause, Set: s.Set, Parts: list},
		}}
	}
	return list
}

// encodeError returns an error as DONE carries it.
func encodeError(err error) []byte {
	text := Clip(err.Error())
	b := Order.AppendUint64(nil, sentinelSet(err))
	b = Order.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	if d := detailsOf(err); d != (details{}) {
		// All of it can be encoded: plain fields of plain types.
		if js, err := json.Marshal(d); err == nil && len(js) <= maxDetails {
			b = append(b, js...)
		}
	}
	return b
}

// parseError is the inverse of encodeError. The first error is what was sent, the second why it cannot be read.
func parseError(b []byte) (sent, err error) {
	if len(b) < 12 {
		return nil, Violationf("an error of %d bytes", len(b))
	}
	set, n := Order.Uint64(b), int(Order.Uint32(b[8:]))
	if b = b[12:]; n > len(b) {
		return nil, Violationf("an error's text of %d bytes in %d", n, len(b))
	}
	e := &Error{Text: string(b[:n]), Set: set}
	if b = b[n:]; len(b) > 0 {
		var d details
		if err := json.Unmarshal(b, &d); err != nil {
			return nil, Violationf("the details of an error: %v", err)
		}
		e.Parts = d.errors()
	}
	return e, nil
}
