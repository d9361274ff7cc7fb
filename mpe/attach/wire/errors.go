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

// sentinels lists the errors that errors.Is recognizes on both sides of the socket. A bit at each error's index
// represents it in a set. New errors are appended; the indexes of existing ones never change, because they are part of
// docs/attach.md.
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

// sentinelSet returns the set of sentinels that errors.Is finds in err.
func sentinelSet(err error) (set uint64) {
	for i := range sentinels {
		if errors.Is(err, sentinels[i].err) {
			set |= 1 << i
		}
	}
	return set
}

// Error is an error of the daemon, received over the socket or about to be sent to a program. errors.Is finds the same
// sentinels in it as at the daemon. errors.As finds *mpe.WaitError, *mpe.PeerLostError, *collective.StepError,
// *collective.CallFailedError, *coll.CallError and the error types of package handshake.
type Error struct {
	Text        string
	SentinelSet uint64
	Causes      []error
}

// Error returns the text of the daemon's error.
func (e *Error) Error() string { return e.Text }

// Is reports whether the error at the daemon matches target according to errors.Is.
func (e *Error) Is(target error) bool {
	for i := range sentinels {
		if e.SentinelSet&(1<<i) != 0 && target == sentinels[i].err {
			return true
		}
	}
	return false
}

// Unwrap returns the structured errors.
func (e *Error) Unwrap() []error { return e.Causes }

// Reason states why a program was refused or disconnected.
type Reason uint16

// Reasons in REFUSED.
const (
	// Violation means that a frame violated the protocol.
	Violation Reason = 1 + iota
	// WrongVersion means that the daemon uses a different version of the protocol.
	WrongVersion
	// NoRank means that the daemon does not offer the rank.
	NoRank
	// Busy means that another program holds the rank.
	Busy
	// Permission means that the program's user may attach to no rank, or not to the requested one.
	Permission
	// Closing means that the daemon is shutting down.
	Closing
	// Late means that the program did not send HELLO in time.
	Late
	// Failed means that the daemon failed for any other reason.
	Failed
	numReasons
)

var reasonNames = [numReasons]string{"", "violation", "version", "no rank", "busy", "permission", "closing", "late",
	"failed"}

// String returns the name used in the specification.
func (r Reason) String() string {
	if r > 0 && r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint16(r))
}

// ErrBusy reports that another program holds the requested rank.
var ErrBusy = errors.New("another program has the rank")

// RefusedError reports that the daemon has refused or disconnected the program.
type RefusedError struct {
	Reason Reason
	// Text is the daemon's explanation.
	Text string
}

// Error returns the daemon's explanation.
func (e *RefusedError) Error() string { return "zrlmpid: " + e.Text }

// Is reports whether target is the sentinel for the reason: mpe.ErrRank, ErrBusy, fs.ErrPermission or
// mpe.ErrClosed.
func (e *RefusedError) Is(target error) bool {
	return target != nil && target == reasonErrors[e.Reason]
}

var reasonErrors = map[Reason]error{NoRank: mpe.ErrRank, Busy: ErrBusy, Permission: fs.ErrPermission,
	Closing: mpe.ErrClosed}

// NewRefusal returns a RefusedError with the given reason and text.
func NewRefusal(reason Reason, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// RefusedFrame returns a REFUSED frame with the reason and text of e.
func RefusedFrame(e *RefusedError) []byte {
	text := ClipText(e.Text)
	b := AppendHeader(nil, FrameRefused, 2+len(text))
	return append(Order.AppendUint16(b, uint16(e.Reason)), text...)
}

// IsRefusal reports whether b begins with a REFUSED frame. Only an attach socket gives such an answer.
func IsRefusal(b []byte) bool {
	return len(b) >= FrameHeaderLen && string(b[4:FrameHeaderLen]) == string([]byte{byte(FrameRefused), 0, 0, 0}) &&
		Order.Uint32(b) <= 2+MaxText
}

// ReadRefused reads a REFUSED frame and returns its content as a *RefusedError. If reading fails, it returns that error
// instead.
func (r *Reader) ReadRefused() error {
	b, err := r.NextBytes(2)
	if err != nil {
		return err
	}
	e := &RefusedError{Reason: Reason(Order.Uint16(b))}
	if e.Text, err = r.Text(); err != nil {
		return err
	}
	return e
}

// details contains the structured errors that were found in an error, in a form that JSON can encode. Fields whose type
// is an error type are encoded unchanged; see plain. Since errors are rare, encoding may be slow.
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
	// Step describes a collective call that failed because of another rank.
	Step *stepDetails `json:"step,omitempty"`
	// Failed describes a collective call that failed on another rank.
	Failed *collective.CallFailedError `json:"failed,omitempty"`
}

// stepDetails is a collective.StepError whose cause is encoded as a text and a set of sentinels.
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

// deadEndDetails is a handshake.DeadEndError whose cause is encoded as a text and a set of sentinels.
type deadEndDetails struct {
	Local, Remote uint32
	Cause         string
	Set           uint64 `json:",omitempty"`
}

// maxOthers is the maximum number of ranks in stepDetails.Others.
const maxOthers = 1000

// waitDetails is an mpe.WaitError whose network error is encoded as a text.
type waitDetails struct {
	handshake.Wait
	Queued     int
	InTransfer bool
	Network    string `json:",omitempty"`
}

// maxDetails is the maximum length of encoded details in bytes. Longer details are omitted.
const maxDetails = 32 << 10

// errorFields returns those fields of the details whose type is an error type.
func (d *details) errorFields() (fields []reflect.Value) {
	for _, field := range reflect.ValueOf(d).Elem().Fields() {
		if _, ok := field.Interface().(error); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

// detailsOf collects the structured errors in err. Fields whose error type can be encoded are filled by reflection; the
// others are converted one by one.
func detailsOf(err error) (d details) {
	if e, ok := errors.AsType[*mpe.WaitError](err); ok {
		d.Wait = &waitDetails{Wait: e.Wait, Queued: e.Queued, InTransfer: e.InTransfer}
		if e.Network != nil {
			d.Wait.Network = ClipText(e.Network.Error())
		}
	}
	for _, field := range d.errorFields() {
		errors.As(err, field.Addr().Interface())
	}
	if e, ok := errors.AsType[*handshake.DeadEndError](err); ok && e.Cause != nil {
		d.DeadEnd = &deadEndDetails{Local: e.Local, Remote: e.Remote, Cause: ClipText(e.Cause.Error()),
			Set: sentinelSet(e.Cause)}
	}
	if e, ok := errors.AsType[*collective.StepError](err); ok && e.Err != nil {
		d.Step = &stepDetails{
			Collective: e.Collective, Algorithm: e.Algorithm, Number: e.Number, Kind: e.Kind, Peer: e.Peer,
			Bytes:  e.Bytes,
			Others: e.Others[:min(len(e.Others), maxOthers)], Cause: ClipText(e.Err.Error()), Set: sentinelSet(e.Err),
		}
	}
	return d
}

// errors returns the structured errors, so that errors.As can search them.
func (d *details) errors() (list []error) {
	if w := d.Wait; w != nil {
		e := &mpe.WaitError{Wait: w.Wait, Queued: w.Queued, InTransfer: w.InTransfer}
		if w.Network != "" {
			e.Network = errors.New(w.Network)
		}
		list = append(list, e)
	}
	for _, field := range d.errorFields() {
		if !field.IsNil() {
			list = append(list, field.Interface().(error))
		}
	}
	if e := d.DeadEnd; e != nil {
		list = []error{&handshake.DeadEndError{
			Local: e.Local, Remote: e.Remote, Cause: &Error{Text: e.Cause, SentinelSet: e.Set, Causes: list},
		}}
	}
	if s := d.Step; s != nil {
		list = []error{&collective.StepError{
			Collective: s.Collective, Algorithm: s.Algorithm, Number: s.Number, Kind: s.Kind, Peer: s.Peer,
			Bytes:  s.Bytes,
			Others: s.Others, Err: &Error{Text: s.Cause, SentinelSet: s.Set, Causes: list},
		}}
	}
	return list
}

// encodeError encodes an error as in DONE.
func encodeError(err error) []byte {
	text := ClipText(err.Error())
	b := Order.AppendUint64(nil, sentinelSet(err))
	b = Order.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	if d := detailsOf(err); d != (details{}) {
		// Marshal cannot fail, because all fields have plain types.
		if js, err := json.Marshal(d); err == nil && len(js) <= maxDetails {
			b = append(b, js...)
		}
	}
	return b
}

// parseError is the inverse of encodeError. The result sent is the decoded error; err is set if the encoding is
// invalid.
func parseError(b []byte) (sent, err error) {
	if len(b) < 12 {
		return nil, Violationf("an error of %d bytes", len(b))
	}
	set, n := Order.Uint64(b), int(Order.Uint32(b[8:]))
	if b = b[12:]; n > len(b) {
		return nil, Violationf("an error's text of %d bytes in %d", n, len(b))
	}
	e := &Error{Text: string(b[:n]), SentinelSet: set}
	if b = b[n:]; len(b) > 0 {
		var d details
		if err := json.Unmarshal(b, &d); err != nil {
			return nil, Violationf("the details of an error: %v", err)
		}
		e.Causes = d.errors()
	}
	return e, nil
}
