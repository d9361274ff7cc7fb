package shm

import (
	"errors"
	"fmt"
	"net/netip"
)

// Causes of a SendError.
var (
	// ErrNoPeer is returned if the receiver is the sender itself or is not of kind rankmap.Software.
	ErrNoPeer = errors.New("this transport does not reach that rank")
	// ErrBadPacket is returned for a packet that is too long.
	ErrBadPacket = errors.New("not a packet")
)

// ErrUnsupported is wrapped by the error of Listen if the system lacks the shared memory that this package
// needs.
var ErrUnsupported = errors.New("shared memory between ranks requires Linux")

// ListenError reports why a rank cannot share memory.
type ListenError struct {
	Rank int
	Addr netip.AddrPort
	// PID is the ID of the process that already runs the rank, 0 if unknown or not the cause. Name is the name of that
	// process.
	PID  int
	Name string
	// Taken is set if another process already runs the rank.
	Taken bool
	// Err is the system's error.
	Err error
}

// Error names the rank, the cause, and a remedy.
func (e *ListenError) Error() string {
	text := fmt.Sprintf("rank %d cannot share memory as %v: ", e.Rank, e.Addr)
	switch {
	case !e.Taken:
		return text + e.Err.Error() + "; set transport: udp for its links to do without shared memory"
	case e.PID == 0:
		return text + "another process is that rank already: stop it, or change the rank's address in the rank map"
	}
	return text + fmt.Sprintf("process %d (%s) is that rank already: stop it, or change the rank's address in "+
		"the rank map", e.PID, e.Name)
}

// Unwrap returns the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// SendError reports that a packet was not sent.
type SendError struct {
	// Rank is the sender, Peer the receiver at Addr. Addr is invalid if the rank map does not list the peer.
	Rank, Peer int
	Addr       netip.AddrPort
	// Err is ErrNoPeer, ErrBadPacket or mpe.ErrTransportClosed.
	Err error
}

// Error names the peer and the cause.
func (e *SendError) Error() string {
	text := fmt.Sprintf("rank %d cannot send to rank %d", e.Rank, e.Peer)
	if e.Addr.IsValid() {
		text += fmt.Sprintf(" (%v)", e.Addr)
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
