package state

import "strings"

// Rank is the state of a rank.
type Rank struct {
	RankInfo
	Engine Engine `json:"engine"`
}

// RankInfo is the state of a rank without its engine.
type RankInfo struct {
	Rank    int    `json:"rank"`
	Role    Role   `json:"role"`
	Address string `json:"address"`
	// Kernel is the kernel of a stand-in. KernelError is the reason why it failed.
	Kernel      string      `json:"kernel,omitempty"`
	KernelState KernelState `json:"kernel_state,omitempty"`
	KernelError string      `json:"kernel_error,omitempty"`
	// KernelBlockReason is Kernel.BlockReason: the reason why the program of an exec kernel exchanges no messages, or
	// how a simulated role blocks messages, with signal and cycle. It is empty for other kernels.
	KernelBlockReason string `json:"kernel_holds,omitempty"`
	// KernelStats are the kernel's counters; nil for a host.
	KernelStats *Kernel `json:"kernel_stats,omitempty"`
	// Transports are the transports of its links.
	Transports []Transport `json:"transports"`
	// ReceiveBuffer is the size, in bytes, of the receive buffer that the kernel granted the rank's UDP socket.
	// ReceiveBufferRequested is the requested size. Both are 0 without a UDP socket.
	ReceiveBuffer          int `json:"receive_buffer"`
	ReceiveBufferRequested int `json:"receive_buffer_requested"`
	// SocketDrops counts datagrams that the kernel dropped because the buffer was full; nil if the kernel
	// does not count them. It is for metrics.
	SocketDrops *uint64 `json:"-"`
	// Offload is the kernel's offload for the socket; nil without a UDP socket.
	Offload *Offload `json:"offload,omitempty"`
	// Ring is the size in bytes of the ring to each peer that shares memory with the rank, or 0.
	Ring int `json:"shm_ring"`
	// Shared is the current number of peers that share memory with the rank. SingleCopy is the number of such peers
	// whose long messages are copied only once, from the sender's memory to the receiver's.
	Shared     int `json:"shm_links"`
	SingleCopy int `json:"shm_single_copy"`
	// Oversubscribed means that the configuration has more ranks on the rank's host than the host has cores,
	// so that a poller yields to other processes.
	Oversubscribed bool `json:"oversubscribed"`
	// Attached are the programs that use the rank.
	Attached []Program `json:"attached,omitempty"`
}

// TransportText returns the transports with a separator between them.
func (r *RankInfo) TransportText(separator string) string {
	names := make([]string, len(r.Transports))
	for i, t := range r.Transports {
		names[i] = string(t)
	}
	return strings.Join(names, separator)
}

// Offload is the kernel's offload for a UDP socket.
type Offload struct {
	// Batches means that one system call can move many datagrams.
	Batches bool `json:"batches"`
	// Segmentation means that the kernel splits long messages into datagrams; Coalescing means that it joins
	// received datagrams.
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
	// Disabled means that limits.offload, the environment, or faults disable Segmentation and Coalescing.
	Disabled bool `json:"disabled"`
	// Refused lists the peers to which the kernel refused to send segmented messages. The rank sends single
	// datagrams to them.
	Refused []OffloadRefused `json:"refused,omitempty"`
}

// OffloadRefused is a peer without segmentation.
type OffloadRefused struct {
	Peer int `json:"peer"`
	// Error is the kernel's error.
	Error string `json:"error"`
}

// Program is a program attached to a rank.
type Program struct {
	PID int `json:"pid"`
	UID int `json:"uid"`
	// Seconds is the time since it attached.
	Seconds float64 `json:"attached_seconds"`
	// Operations is the number of its pending operations. Bytes is the size of their buffers.
	Operations int   `json:"operations"`
	Bytes      int64 `json:"bytes"`
	// Stopped means that a signal or a debugger has stopped it.
	Stopped bool `json:"stopped,omitempty"`
}

// Detail is the level of detail at which a RankInfo is gathered.
type Detail uint8

const (
	// DetailScrape omits details that need a system call per program or that no metric uses.
	DetailScrape Detail = iota
	DetailFull
)
