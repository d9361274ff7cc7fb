package control

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/standin"
)

// Status is the state of the daemon at one moment.
type Status struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Config is the source of the configuration: a file name, or "standard input".
	Config string `json:"config"`
	// Started is when all sockets were bound. Uptime is the time since, in seconds.
	Started time.Time `json:"started"`
	Uptime  float64   `json:"uptime_seconds"`
	// LostLogLines counts log lines that were discarded because the log was full, or
	// could not be written.
	LostLogLines uint64 `json:"lost_log_lines"`
	// Job is the name of a job; empty for a daemon. Then Version is that of the caller, and Silent are the ranks whose
	// processes are on this host and do not answer.
	Job    string `json:"job,omitempty"`
	Silent []int  `json:"silent,omitempty"`
	// SilentProcesses are the processes of Silent that could be found.
	SilentProcesses []SilentProcess `json:"silent_processes,omitempty"`
	// HTTP is the URL of metrics, health and status page; empty if HTTP is disabled.
	HTTP string `json:"http,omitempty"`
	// Cluster lists all ranks in rank order.
	Cluster []Member `json:"cluster"`
	// Ranks lists the local ranks in rank order.
	Ranks []LocalRank `json:"ranks"`
	// Failures lists the last operations of the local ranks that failed, at most 100, the newest first. It is empty for a job.
	Failures []Failure `json:"recent_failures"`
}

// Member is one rank of the cluster.
type Member struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	// Kind is fpga, cpu or software.
	Kind string `json:"kind"`
	// Role is host or standin for a local rank, and empty for a remote one.
	Role   string `json:"role,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	// Profile and Transport are those of the link from this daemon's lowest other rank.
	Profile   string `json:"profile,omitempty"`
	Transport string `json:"transport,omitempty"`
}

// LocalRank is a rank that the daemon runs.
type LocalRank struct {
	RankInfo
	Engine mpe.Snapshot `json:"engine"`
}

// RankInfo is the state of a local rank without that of its engine.
type RankInfo struct {
	Rank    int    `json:"rank"`
	Role    string `json:"role"`
	Address string `json:"address"`
	// Kernel is what a stand-in runs, KernelState one of the Kernel constants, and
	// KernelError why it failed.
	Kernel      string `json:"kernel,omitempty"`
	KernelState string `json:"kernel_state,omitempty"`
	KernelError string `json:"kernel_error,omitempty"`
	// KernelHolds is the signal with which a role in simulation holds its messages up, since
	// which cycle, and how. It is empty for other kernels.
	KernelHolds string `json:"kernel_holds,omitempty"`
	// KernelStats are the kernel's counters; nil for a host.
	KernelStats *standin.Stats `json:"kernel_stats,omitempty"`
	// Transports are those of its links: udp, tcp, shm.
	Transports []string `json:"transports"`
	// ReceiveBuffer is the size in bytes that the kernel granted the rank's UDP socket,
	// of ReceiveBufferRequested; both are 0 without one.
	ReceiveBuffer          int `json:"receive_buffer"`
	ReceiveBufferRequested int `json:"receive_buffer_requested"`
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

// Offload is what the kernel does for a UDP socket.
type Offload struct {
	// Batches: a system call moves many datagrams.
	Batches bool `json:"batches"`
	// Segmentation: the kernel cuts long messages into datagrams. Coalescing: the kernel
	// joins received datagrams.
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
	// Disabled: both are disabled by limits.offload or the environment.
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

// The states of a stand-in's kernel.
const (
	KernelRunning = "running"
	KernelEnded   = "ended"
	KernelFailed  = "failed"
)

// The roles of local ranks.
const (
	RoleHost    = "host"
	RoleStandin = "standin"
)

// Member returns the cluster's entry of a rank, or nil.
func (s *Status) Member(rank int) *Member {
	if rank < 0 || rank >= len(s.Cluster) {
		return nil
	}
	return &s.Cluster[rank]
}
