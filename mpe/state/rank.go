package state

import (
	"fmt"
	"strings"
)

// Rank is the state of a rank.
type Rank struct {
	RankInfo
	Engine Engine `json:"engine"`
}

// RankInfo describes the state of a rank, apart from its engine.
type RankInfo struct {
	Rank    int    `json:"rank"`
	Role    Role   `json:"role"`
	Address string `json:"address"`
	// Kernel is the name of the kernel that a stand-in runs. KernelError is the reason why the kernel failed, if it
	// did.
	Kernel      string      `json:"kernel,omitempty"`
	KernelState KernelState `json:"kernel_state,omitempty"`
	KernelError string      `json:"kernel_error,omitempty"`
	// KernelBlockReason is the result of Kernel.BlockReason: why the program of an exec kernel exchanges no messages,
	// or how a simulated role blocks messages. It is empty for other kernels.
	KernelBlockReason string `json:"kernel_holds,omitempty"`
	// KernelStats holds the kernel's counters. It is nil for a host.
	KernelStats *Kernel `json:"kernel_stats,omitempty"`
	// Transports lists the transports that the rank's links use.
	Transports []Transport `json:"transports"`
	// ReceiveBufferRequested is the size, in bytes, that the rank requested for its UDP socket's receive buffer, and
	// ReceiveBuffer is the size that the kernel granted. Both are 0 without a UDP socket.
	ReceiveBuffer          int `json:"receive_buffer"`
	ReceiveBufferRequested int `json:"receive_buffer_requested"`
	// SocketDrops counts the datagrams that the kernel dropped because the socket's receive buffer was full. It is used
	// by metrics only, and is nil if the kernel does not count them.
	SocketDrops *uint64 `json:"-"`
	// Offload describes how the kernel offloads work for the rank's UDP socket. It is nil without a UDP socket.
	Offload *Offload `json:"offload,omitempty"`
	// Path describes the path past the kernel's network stack. It is nil if no link of the rank is configured to use
	// it.
	Path *Path `json:"path,omitempty"`
	// Ring is the size, in bytes, of each ring buffer to a peer that shares memory with the rank. It is 0 if there is
	// no such peer.
	Ring int `json:"shm_ring"`
	// Shared is the current number of peers that share memory with the rank. SingleCopy is the number of these peers
	// whose long messages are copied directly from the sender's memory to the receiver's.
	Shared     int `json:"shm_links"`
	SingleCopy int `json:"shm_single_copy"`
	// Oversubscribed means that more ranks are configured on the rank's host than the host has cores, so that pollers
	// yield to other processes.
	Oversubscribed bool `json:"oversubscribed"`
	// Attached lists the programs that use the rank.
	Attached []Program `json:"attached,omitempty"`
}

// TransportText returns the transports, joined by separator.
func (r *RankInfo) TransportText(separator string) string {
	names := make([]string, len(r.Transports))
	for i, t := range r.Transports {
		names[i] = string(t)
	}
	return strings.Join(names, separator)
}

// Offload describes the features by which the kernel speeds up a UDP socket.
type Offload struct {
	// Batches means that one system call can send or receive many datagrams.
	Batches bool `json:"batches"`
	// Segmentation means that the kernel splits long messages into datagrams (GSO); Coalescing means that it joins
	// received datagrams (GRO).
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
	// Disabled means that limits.offload, the environment, or faults disable Segmentation and Coalescing.
	Disabled bool `json:"disabled"`
	// Refused lists the peers that the kernel refused to send segmented messages to. The rank sends these peers single
	// datagrams.
	Refused []OffloadRefused `json:"refused,omitempty"`
}

// OffloadRefused describes a peer to which the kernel refused to send segmented messages.
type OffloadRefused struct {
	Peer int `json:"peer"`
	// Error is the kernel's error.
	Error string `json:"error"`
}

// Path describes how a rank sends and receives datagrams past the kernel's network stack (AF_XDP).
type Path struct {
	// Error is the reason why the rank uses only the kernel's socket. If it is not empty, all other fields are zero.
	Error string `json:"error,omitempty"`
	// Device is the name of the network device, and Driver that of its driver.
	Device string `json:"device,omitempty"`
	Driver string `json:"driver,omitempty"`
	// Generic means that datagrams are taken from the kernel's buffers because the driver does not support XDP.
	// ZeroCopy means that the device reads and writes the memory of the rank itself.
	Generic  bool `json:"generic"`
	ZeroCopy bool `json:"zero_copy"`
	// Queues is the number of receive queues.
	Queues int `json:"queues"`
	// Sent and Received count datagrams that used the path, and Bypassed datagrams left to the kernel's socket because
	// they did not fit into a frame.
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Bypassed uint64 `json:"bypassed"`
	// Long counts datagrams of long messages. They are sent by the kernel's socket, whose segmentation is faster.
	Long uint64 `json:"long"`
	// Corrupt counts received frames with a wrong checksum or for another hardware address. Full counts datagrams that
	// the kernel dropped because the rank read too slowly.
	Corrupt uint64 `json:"corrupt"`
	Full    uint64 `json:"full"`
	// ByKernel lists the peers to which datagrams are sent by the kernel's socket.
	ByKernel []PathRefusal `json:"by_kernel,omitempty"`
}

// Text describes the path in a few words.
func (p *Path) Text() string {
	how := "copy"
	switch {
	case p.ZeroCopy:
		how = "zero copy"
	case p.Generic:
		how = "generic"
	}
	return fmt.Sprintf("AF_XDP on %s (%s, %s)", p.Device, p.Driver, how)
}

// PathRefusal is the reason why the path does not carry datagrams to a peer.
type PathRefusal struct {
	Peer   int    `json:"peer"`
	Reason string `json:"reason"`
	// Unresolved means that the kernel does not know the hardware address of the next hop. It resolves the address when
	// the first datagram is sent.
	Unresolved bool `json:"unresolved,omitempty"`
	// Local means that the peer has an address of this host.
	Local bool `json:"local,omitempty"`
}

// Program is a program attached to a rank.
type Program struct {
	PID int `json:"pid"`
	UID int `json:"uid"`
	// Seconds is the time, in seconds, since the program attached.
	Seconds float64 `json:"attached_seconds"`
	// Operations is the number of the program's pending operations, and Bytes the total size of their buffers.
	Operations int   `json:"operations"`
	Bytes      int64 `json:"bytes"`
	// Stopped means that a signal or a debugger has stopped the program.
	Stopped bool `json:"stopped,omitempty"`
}

// Detail determines how detailed a RankInfo is.
type Detail uint8

const (
	// DetailScrape omits details that no metric uses, or that need a system call per program.
	DetailScrape Detail = iota
	DetailFull
)
