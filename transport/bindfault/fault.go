// Package bindfault explains why a rank could not be bound to its address: which process holds the port, or
// which addresses this machine has instead and which ranks they belong to. It investigates only after a bind
// has failed, and must never try to repair anything.
package bindfault

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// ListenError reports a failed bind and its cause: the process that holds the port, or the addresses that the
// machine has instead.
type ListenError struct {
	// Network is "udp" or "tcp".
	Network string
	Rank    int
	Addr    netip.AddrPort
	// Holder is the process that holds the port. It is nil if the process is unknown or another cause applies.
	Holder *Process
	// LocalAddrs lists this machine's addresses if Addr is not among them.
	LocalAddrs []Address
	// Err is the system's error.
	Err error
}

// Process is a process of this machine.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Socket is a socket bound to an address.
type Socket struct {
	// Holder is the process that owns the socket, nil if the system does not report it.
	Holder *Process
	// Drops counts the datagrams dropped because the receive buffer was full.
	Drops uint64

	inode string
}

// Address is an address of this machine, with its rank in the rank map.
type Address struct {
	IP netip.Addr
	// Rank is rankmap.NoRank if no rank has the address, or if several ranks share it.
	Rank int
}

// New explains err, which is the error returned when the given rank in m was bound to its address.
func New(network string, rank int, m *rankmap.Map, err error) *ListenError {
	listenError := &ListenError{Network: network, Rank: rank, Addr: m.Addr(rank), Err: err}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		if s := Bound(network, listenError.Addr); s != nil {
			listenError.Holder = s.Holder
		}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		listenError.LocalAddrs = localAddresses(m)
	}
	return listenError
}

// localAddresses returns the addresses of this machine, as far as the system reports them.
func localAddresses(m *rankmap.Map) []Address {
	ifAddrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var list []Address
	for _, a := range ifAddrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		ip := prefix.Addr().Unmap()
		list = append(list, Address{ip, m.Resolve(netip.AddrPortFrom(ip, 0))})
	}
	return list
}

// Unwrap returns the system's error.
func (f *ListenError) Unwrap() error { return f.Err }

// Error names the rank and the address, the cause, and a remedy.
func (f *ListenError) Error() string {
	text := fmt.Sprintf("rank %d cannot listen on %s %v: ", f.Rank, f.Network, f.Addr)
	switch {
	case errors.Is(f.Err, syscall.EADDRINUSE):
		return text + f.inUseText()
	case errors.Is(f.Err, syscall.EADDRNOTAVAIL):
		return text + f.notLocalText()
	case errors.Is(f.Err, syscall.EACCES) || errors.Is(f.Err, syscall.EPERM):
		return text + f.forbiddenText()
	}
	return text + f.Err.Error()
}

func (f *ListenError) inUseText() string {
	switch {
	case f.Holder == nil:
		return fmt.Sprintf("another process holds the port: find it as root with \"ss -lnp --%s 'sport = :%d'\" and "+
			"stop it, or change the port in the rank map",
			f.Network, f.Addr.Port())
	case f.Holder.PID == os.Getpid():
		return "this process holds the port already: it listens for the rank twice, or another of its listeners is " +
			"on that port"
	}
	return fmt.Sprintf("process %d (%s) holds the port: stop it, or change the port in the rank map", f.Holder.PID,
		f.Holder.Name)
}

// maxListed is the maximum number of addresses listed in a message.
const maxListed = 16

func (f *ListenError) notLocalText() string {
	var b strings.Builder
	b.WriteString("this machine does not have that address")
	for i, address := range f.LocalAddrs {
		switch {
		case i == maxListed:
			fmt.Fprintf(&b, " and %d more", len(f.LocalAddrs)-i)
		case i > maxListed:
			continue
		case i == 0:
			fmt.Fprintf(&b, "; it has %v", address.IP)
		default:
			fmt.Fprintf(&b, ", %v", address.IP)
		}
		if i < maxListed && address.Rank != rankmap.NoRank {
			fmt.Fprintf(&b, " (rank %d)", address.Rank)
		}
	}
	fmt.Fprintf(&b, ": the rank map may be shifted, or rank %d is to run on another machine", f.Rank)
	return b.String()
}

func (f *ListenError) forbiddenText() string {
	return fmt.Sprintf("%v: ports below 1024 need root or CAP_NET_BIND_SERVICE; otherwise a sandbox or security "+
		"policy forbids it", f.Err)
}
