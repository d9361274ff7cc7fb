package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// Kind classifies errors for programs.
type Kind string

// Kinds of errors.
const (
	// Usage means that the request is invalid.
	Usage Kind = "usage"
	// Rank means that the requested rank does not exist or does not support this kind of request.
	Rank Kind = "rank"
	// Timeout means that the caller's timeout or a deadline of the link expired.
	Timeout Kind = "timeout"
	// Partial, Empty, TooLong, Truncated and Remote correspond to the errors of package handshake with these names.
	Partial   Kind = "partial"
	Empty     Kind = "empty"
	TooLong   Kind = "too_long"
	Truncated Kind = "truncated"
	Remote    Kind = "remote"
	// PeerLost means that the peer is gone, or that the kernel of a stand-in failed.
	PeerLost Kind = "peer_lost"
	// Closed means that the daemon is shutting down.
	Closed Kind = "closed"
	// Canceled means that the caller cancelled its operation.
	Canceled Kind = "canceled"
	// Mismatch means that the echo returned by a rank differs from the message sent.
	Mismatch Kind = "mismatch"
	// Refused means that the daemon refused to load a configuration and keeps the previous one.
	Refused Kind = "refused"
	// Permission means that the caller's user may not make the request.
	Permission Kind = "permission"
	// Busy means that a limit on concurrent requests was reached.
	Busy Kind = "busy"
	// Failed is the kind of all other errors.
	Failed Kind = "failed"
)

// Error is an error that the daemon reports over the control socket.
type Error struct {
	Message string `json:"error"`
	Kind    Kind   `json:"kind"`
	// Restart lists the changes that require a restart, if the configuration was refused.
	Restart []string `json:"restart,omitempty"`
}

// Error returns Message.
func (e *Error) Error() string { return e.Message }

// Is reports whether e is of kind Permission and target is fs.ErrPermission, or e is of kind Canceled and target is
// context.Canceled.
func (e *Error) Is(target error) bool {
	return e.Kind == Permission && target == fs.ErrPermission || e.Kind == Canceled && target == context.Canceled
}

// Errorf returns an Error of the given kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// errorKinds maps Go errors to kinds. If an error matches several entries, the first one applies.
var errorKinds = []struct {
	err  error
	kind Kind
}{
	{handshake.ErrPartial, Partial},
	{handshake.ErrTimeout, Timeout},
	{handshake.ErrEmpty, Empty},
	{handshake.ErrTooLong, TooLong},
	{handshake.ErrTruncated, Truncated},
	{handshake.ErrRemote, Remote},
	{mpe.ErrPeerLost, PeerLost},
	{mpe.ErrClosed, Closed},
	{mpe.ErrRank, Rank},
	{mpe.ErrLength, Usage},
	{mpe.ErrTag, Usage},
	{fs.ErrPermission, Permission},
	{context.DeadlineExceeded, Timeout},
	{context.Canceled, Canceled},
}

// KindOf returns the kind of an error from any package of this module.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return cmp.Or(e.Kind, Failed)
	}
	for _, k := range errorKinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return Failed
}

// AsError converts err to an Error to send over the control socket.
func AsError(err error) *Error {
	e := &Error{Kind: KindOf(err), Message: err.Error()}
	if inner, ok := errors.AsType[*Error](err); ok {
		e.Restart = inner.Restart
	}
	return e
}

// httpStatus returns the HTTP status code for errors of kind k.
func (k Kind) httpStatus() int {
	switch k {
	case Usage, Empty:
		return http.StatusBadRequest
	case Permission:
		return http.StatusForbidden
	case Rank:
		return http.StatusNotFound
	case TooLong:
		return http.StatusRequestEntityTooLarge
	case Refused:
		return http.StatusConflict
	case Closed, Busy:
		return http.StatusServiceUnavailable
	case Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// UnreachableError reports that no daemon answers on a control socket.
type UnreachableError struct {
	Socket string
	Err    error
	// JobPlaces lists the directories in which this user's jobs were searched for, and not found. It is nil if the
	// caller did not search.
	JobPlaces []string
}

// Error states the socket, the cause and a remedy.
func (e *UnreachableError) Error() string {
	if errors.Is(e.Err, syscall.EACCES) {
		return fmt.Sprintf("control socket %s: %v: %s", e.Socket, e.Err, whoMayConnect(e.Socket))
	}
	if e.JobPlaces != nil {
		return fmt.Sprintf("no zrlmpid answers on %s (%v), and no job of this user runs on this host (none in %s): "+
			"start a daemon with \"zrlmpid --config FILE\" or a job with \"zrlctl run\", or name the control socket of "+
			"a daemon with --socket or ZRLMPID_CONTROL_SOCKET",
			e.Socket, e.Err, strings.Join(e.JobPlaces, ", "))
	}
	return fmt.Sprintf("no zrlmpid answers on %s (%v): start it with \"zrlmpid --config FILE\", or name its control "+
		"socket with --socket or ZRLMPID_CONTROL_SOCKET",
		e.Socket, e.Err)
}

// Unwrap returns the underlying error.
func (e *UnreachableError) Unwrap() error { return e.Err }
