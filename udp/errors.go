package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// ListenError reports that a rank could not be bound to its address: who has the port, which addresses the machine has
// instead, and what to do.
type ListenError = bindfault.ListenError

// SendError reports that a packet or message was not sent, or only its beginning.
type SendError struct {
	// Rank is the sender, and Peer the receiver at Addr. Addr is not valid if the rank map does not have the peer.
	Rank, Peer int
	Addr       netip.AddrPort
	// Sent is the number of datagrams of the message that were sent before the error, of Of datagrams in total. If Sent
	// is neither 0 nor Of, the peer has the beginning of a message, from which an FPGA does not recover by itself.
	Sent, Of int64
	Err      error
}

// Error names the peer, the progress of the message, and the cause.
func (e *SendError) Error() string {
	text := fmt.Sprintf("rank %d cannot send to rank %d", e.Rank, e.Peer)
	if e.Addr.IsValid() {
		text += fmt.Sprintf(" (%v)", e.Addr)
	}
	if e.Of > 1 {
		text += fmt.Sprintf(", after %d of %d datagrams", e.Sent, e.Of)
	}
	return text + ": " + e.Err.Error() + e.advice()
}

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

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// Causes of a SendError that are mistakes of the caller.
var (
	// ErrNoPeer: the rank map does not have the peer.
	ErrNoPeer = errors.New("the rank map does not have that rank")
	// ErrBadPacket: the header, the payload or the shape is invalid.
	ErrBadPacket = errors.New("not a packet")
)
