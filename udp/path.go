package udp

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Path carries datagrams past the kernel's socket where it can. At most one goroutine at a time calls Stage and Flush,
// and at most one Receive and Pending; both may run concurrently.
type Path interface {
	// Carries reports whether datagrams of up to length bytes to a peer can use the path now. The answer may change at
	// any time.
	Carries(peer, length int) bool
	// Stage copies a datagram, the concatenation of parts, for sending to a peer that the path carries. It returns false
	// if there is no space before the next Flush.
	Stage(peer int, parts *[3][]byte) bool
	// Flush sends all staged datagrams. If the device is busy, they stay staged, and the error is EAGAIN, EBUSY or
	// ENOBUFS. They also stay staged after any other error, which means that the device does not work.
	Flush() error
	// Discard drops the staged datagrams that the device has not taken, and returns their number.
	Discard() int
	// Receive stores received datagrams in batch and returns their number. Their bytes are valid until the next call.
	Receive(batch []Datagram) int
	// Pending reports whether Receive would return a datagram.
	Pending() bool
	// Bypassed returns the number of datagrams to this rank that the path did not take, but the kernel's socket, since it
	// was opened. It increases before the datagram enters the socket.
	Bypassed() uint64
	// Coalescing returns whether the kernel's socket may coalesce datagrams.
	Coalescing() Coalescing
	// Descriptors returns file descriptors that are readable while Pending is true.
	Descriptors() []int
	// State describes the path, and which peers it does not carry. It may be called at any time.
	State() state.Path
	// Move changes the addresses of the peers, in rank order.
	Move(peers []netip.AddrPort)
	// Close releases the path. No other method may be called during or after it.
	Close()
}

// Coalescing determines whether the kernel's socket coalesces datagrams (UDP_GRO).
type Coalescing uint8

const (
	// CoalesceAny leaves the decision to the socket.
	CoalesceAny Coalescing = iota
	// CoalesceNever is for paths that would receive coalesced datagrams as one.
	CoalesceNever
	// CoalesceAlways is for paths on which several datagrams in one piece bypass the path, and count as one.
	CoalesceAlways
)

// Datagram is a datagram that a Path has received.
type Datagram struct {
	Bytes []byte
	From  netip.AddrPort
	// After is the value of Path.Bypassed when the datagram arrived, which is the number of bypassed datagrams that
	// precede it.
	After uint64
}

// OpenPath opens the path between a local address and peers, in rank order.
type OpenPath func(local netip.AddrPort, peers []netip.AddrPort) (Path, error)
