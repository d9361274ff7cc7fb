package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// ListenError reports that a rank could not be bound to its address. It names the process that uses the port, or the
// addresses of the machine, and a remedy.
type ListenError = bindfault.ListenError

// SendError reports that a packet or message was not sent, or that only its beginning was sent.
type SendError struct {
	// Rank is the sender, Peer the receiver, and Addr the receiver's address. Addr is not valid if the rank map does
	// not contain the peer.
	Rank, Peer int
	Addr       netip.AddrPort
	// Total is the number of datagrams in the message, and Sent the number sent before the error. If Sent is neither 0
	// nor Total, the peer may have received only the beginning of the message, from which an FPGA does not recover by
	// itself.
	Sent, Total int64
	Err         error
}

// Error describes the peer, the number of datagrams sent, and the cause.
func (e *SendError) Error() string {
	text := fmt.Sprintf("rank %d cannot send to rank %d", e.Rank, e.Peer)
	if e.Addr.IsValid() {
		text += fmt.Sprintf(" (%v)", e.Addr)
	}
	if e.Total > 1 {
		text += fmt.Sprintf(", after %d of %d datagrams", e.Sent, e.Total)
	}
	return text + ": " + e.Err.Error() + e.advice()
}

// advice returns a remedy for the causes that a user can remove, or an empty string.
func (e *SendError) advice() string {
	switch {
	case errors.Is(e.Err, syscall.EMSGSIZE):
		return ": the path MTU must allow datagrams of this length"
	case errors.Is(e.Err, syscall.ENETUNREACH) || errors.Is(e.Err, syscall.EHOSTUNREACH):
		return ": check the rank map and the route to this address"
	case errors.Is(e.Err, syscall.EPERM):
		return ": a packet filter on this machine forbids it"
	}
	return ""
}

// Unwrap returns Err.
func (e *SendError) Unwrap() error { return e.Err }

// Causes of a SendError for which the caller is responsible.
var (
	// ErrNoPeer is the cause if the rank map does not contain the peer.
	ErrNoPeer = errors.New("the rank map does not have that rank")
	// ErrBadPacket is the cause if the header, the payload or the shape is invalid.
	ErrBadPacket = errors.New("not a packet")
)
