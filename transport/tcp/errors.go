package tcp

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Causes of a SendError.
var (
	// ErrNotConnected is returned if there is no connection to the peer, or if the connection broke while the packet
	// was being sent. Recv returns an mpe.RxConnected when a new connection is made.
	ErrNotConnected = errors.New("not connected")
	// ErrNoPeer is returned if the rank map does not list the peer, or does not list it as a software rank.
	ErrNoPeer = errors.New("no such peer on TCP")
	// ErrProfile is returned for a kind of packet that the peer's profile does not include.
	ErrProfile = errors.New("the peer's profile does not allow it")
)

// ListenError reports that a rank could not be bound to its address. It names the process that holds the port,
// or the addresses that the machine has instead, and a remedy.
type ListenError = bindfault.ListenError

// SharedIPError reports that two ranks on TCP have the same IP, so that their peers cannot distinguish them.
type SharedIPError struct {
	Rank, Other int
	IP          netip.Addr
}

// Error names the ranks.
func (e *SharedIPError) Error() string {
	return fmt.Sprintf("tcp: ranks %d and %d share %v, but ranks on TCP are identified by IP address: give each its "+
		"own IP address (on one machine: 127.0.0.1, 127.0.0.2 …), or use UDP",
		e.Rank, e.Other, e.IP)
}

// checkUniqueIPs returns a *SharedIPError if two software ranks share an IP.
func checkUniqueIPs(m *rankmap.Map) error {
	holder := make(map[netip.Addr]int)
	for _, entry := range m.Entries() {
		if entry.Kind != rankmap.Software {
			continue
		}
		ip := entry.Addr.Addr()
		if other, taken := holder[ip]; taken {
			return &SharedIPError{Rank: other, Other: entry.Rank, IP: ip}
		}
		holder[ip] = entry.Rank
	}
	return nil
}

// SendError reports that a packet was not sent.
type SendError struct {
	// Rank is the sender, Peer the receiver at Addr. Addr is invalid if the rank map does not list the peer.
	Rank, Peer int
	Addr       netip.AddrPort
	// Err is the cause: ErrNotConnected, ErrNoPeer, ErrProfile, an error of package protocol, or
	// mpe.ErrTransportClosed.
	Err error
	// LastErr is the error of the last attempt to connect or to write, nil if no such attempt failed.
	LastErr error
}

// Error names the peer and the cause.
func (e *SendError) Error() string {
	text := fmt.Sprintf("rank %d cannot send to rank %d", e.Rank, e.Peer)
	if e.Addr.IsValid() {
		text += fmt.Sprintf(" (%v)", e.Addr)
	}
	text += ": " + e.Err.Error()
	switch {
	case e.LastErr != nil:
		text += fmt.Sprintf("; last: %v", e.LastErr)
	case errors.Is(e.Err, ErrNotConnected) && e.Peer < e.Rank:
		text += fmt.Sprintf("; rank %d must dial and has not: is it running, with the same rank map?", e.Peer)
	}
	return text
}

// Unwrap returns both causes.
func (e *SendError) Unwrap() []error {
	if e.LastErr == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.LastErr}
}
