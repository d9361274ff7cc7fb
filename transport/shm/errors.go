package shm

import (
	"errors"
	"fmt"
	"net/netip"
)

// The causes of a SendError.
var (
	// ErrNoPeer: packets go to other ranks of kind rankmap.Software.
	ErrNoPeer = errors.New("this transport does not speak to that rank")
	// ErrBadPacket: the packet is longer than any may be.
	ErrBadPacket = errors.New("not a packet")
)

// ErrUnsupported is in the error of Listen where the system has no shared memory as
// this package needs it.
var ErrUnsupported = errors.New("shared memory between ranks takes Linux")

// ListenError says why a rank cannot share memory.
type ListenError struct {
	Rank int
	Addr netip.AddrPort
	// PID is the process that is that rank already, where that is the trouble
	// and the system reports it; else 0. Name is what it is called.
	PID  int
	Name string
	// Taken says that the rank is taken.
	Taken bool
	// Err is the system's error.
	Err error
}

// Error says what happened, where, and what to do.
func (e *ListenError) Error() string {
	text := fmt.Sprintf("rank %d cannot share memory as %v: ", e.Rank, e.Addr)
	switch {
	case !e.Taken:
		return text + e.Err.Error() + "; give its links transport: udp to do without"
	case e.PID == 0:
		return text + "another process is that rank already: stop it, or change the rank's address in the rank map"
	}
	return text + fmt.Sprintf("process %d (%s) is that rank already: stop it, or change the rank's address in the rank map", e.PID, e.Name)
}

// Unwrap returns the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// SendError says that a packet was not sent.
type SendError struct {
	// Rank is the sender, Peer the receiver at Addr. Addr is not valid if the
	// rank map has no such peer.
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
