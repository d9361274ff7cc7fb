package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// ListenError says why a rank could not be bound to its address: who has the
// port, which addresses the machine has instead, and what to do.
type ListenError = bindfault.ListenError

// SendError says that a packet or message was not sent, or only the start of it.
type SendError struct {
	// Rank is the sender, Peer the receiver at Addr. Addr is not valid if the
	// rank map has no such peer.
	Rank, Peer int
	Addr       netip.AddrPort
	// Sent is how many datagrams of the message the network took before the
	// error, and Of how many there are. If Sent is neither 0 nor Of, the peer
	// has the start of a message, which an FPGA does not get over by itself.
	Sent, Of int64
	Err      error
}

// Error names the peer, how far the message came, and the cause.
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
		return ": the path's MTU must let datagrams of this length pass"
	case errors.Is(e.Err, syscall.ENETUNREACH) || errors.Is(e.Err, syscall.EHOSTUNREACH):
		return ": check the rank map and the route to this address"
	case errors.Is(e.Err, syscall.EPERM):
		return ": a packet filter on this machine forbids it"
	}
	return ""
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// The causes of a SendError that are mistakes of the caller.
var (
	// ErrNoPeer: the rank map does not have the peer.
	ErrNoPeer = errors.New("the rank map does not have that rank")
	// ErrBadPacket: the header, the payload or the shape cannot be right.
	ErrBadPacket = errors.New("not a packet")
)
