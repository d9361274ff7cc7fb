package state

import "strings"

// Rank is the state of a rank.
type Rank struct {
	RankInfo
	Engine Engine `json:"engine"`
}

// RankInfo is the state of a rank without that of its engine.
type RankInfo struct {
	Rank    int    `json:"rank"`
	Role    Role   `json:"role"`
	Address string `json:"address"`
	// Kernel is what a stand-in runs, and KernelError why it failed.
	Kernel      string      `json:"kernel,omitempty"`
	KernelState KernelState `json:"kernel_state,omitempty"`
	KernelError string      `json:"kernel_error,omitempty"`
	// KernelHolds is why the program of a kernel exec exchanges no messages, or the signal with
	// which a role in simulation holds its messages up, since which cycle, and how. It is empty for
	// other kernels.
	KernelHolds string `json:"kernel_holds,omitempty"`
	// KernelStats are the kernel's counters; nil for a host.
	KernelStats *Kernel `json:"kernel_stats,omitempty"`
	// Transports are those of its links.
	Transports []Transport `json:"transports"`
	// ReceiveBuffer is the size in bytes that the kernel granted the rank's UDP socket,
	// of ReceiveBufferRequested; both are 0 without one.
	ReceiveBuffer          int `json:"receive_buffer"`
	ReceiveBufferRequested int `json:"receive_buffer_requested"`
	// SocketDrops counts datagrams that the kernel dropped because that buffer was full; nil if it does not count them.
	// It is for metrics.
	SocketDrops *uint64 `json:"-"`
	// Offload is what the kernel does for that socket; nil without one.
	Offload *Offload `json:"offload,omitempty"`
	// Ring is the size in bytes of the ring to each peer with which the rank shares
	// memory; 0 without one.
	Ring int `json:"shm_ring"`
	// Shared is the number of peers with which the rank shares memory now, and SingleCopy
	// the number of those whose long messages are copied once, from the sender's memory
	// to the receiver's.
	Shared     int `json:"shm_links"`
	SingleCopy int `json:"shm_single_copy"`
	// Oversubscribed: the configuration has more ranks on the rank's host than the host
	// has cores, so that a poller yields to other processes.
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

// Offload is what the kernel does for a UDP socket.
type Offload struct {
	// Batches: a system call moves many datagrams.
	Batches bool `json:"batches"`
	// Segmentation: the kernel cuts long messages into datagrams. Coalescing: the kernel
	// joins received datagrams.
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
	// Disabled: both are disabled by limits.offload, the environment, or faults.
	Disabled bool `json:"disabled"`
	// Refused are the peers to which the kernel refused to send segments; the rank sends
	// them single datagrams.
	Refused []OffloadRefused `json:"refused,omitempty"`
}

// OffloadRefused is a peer without segmentation.
type OffloadRefused struct {
	Peer int `json:"peer"`
	// Error is the kernel's error.
	Error string `json:"error"`
}

// Program is a program that is attached to a rank.
type Program struct {
	PID int `json:"pid"`
	UID int `json:"uid"`
	// Seconds is the time since it attached.
	Seconds float64 `json:"attached_seconds"`
	// Operations counts its pending operations, Bytes their buffers.
	Operations int   `json:"operations"`
	Bytes      int64 `json:"bytes"`
	// Stopped: a signal or a debugger has stopped it.
	Stopped bool `json:"stopped,omitempty"`
}

// Depth is how much of a RankInfo is gathered.
type Depth uint8

const (
	// Scrape leaves out what takes a system call for each program, or concerns no metric.
	Scrape Depth = iota
	Full
)
