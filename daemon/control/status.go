package control

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/standin"
)

// Status is what the daemon is doing at one moment.
type Status struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Config is where the configuration came from: a file's name, or
	// "standard input".
	Config string `json:"config"`
	// Started is when all sockets were bound; Uptime counts from it, in
	// seconds.
	Started time.Time `json:"started"`
	Uptime  float64   `json:"uptime_seconds"`
	// LostLogLines counts log lines that the log took too slowly, or that could not
	// be written to it.
	LostLogLines uint64 `json:"lost_log_lines"`
	// HTTP is where the daemon serves metrics, health and its status page; empty
	// if it does not.
	HTTP string `json:"http,omitempty"`
	// Cluster lists all ranks in rank order.
	Cluster []Member `json:"cluster"`
	// Ranks are the local ones in rank order.
	Ranks []LocalRank `json:"ranks"`
}

// Member is one rank of the cluster.
type Member struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	// Kind is what others take the rank for: fpga, cpu or software.
	Kind string `json:"kind"`
	// Role is host or standin for a local rank, and empty for a remote one.
	Role   string `json:"role,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	// Profile and Transport are those of the link from this daemon's lowest
	// other rank.
	Profile   string `json:"profile,omitempty"`
	Transport string `json:"transport,omitempty"`
}

// LocalRank is a rank that the daemon runs.
type LocalRank struct {
	Rank    int    `json:"rank"`
	Role    string `json:"role"`
	Address string `json:"address"`
	// Kernel is what a stand-in runs, and KernelState one of the Kernel
	// constants; KernelError says why it failed.
	Kernel      string `json:"kernel,omitempty"`
	KernelState string `json:"kernel_state,omitempty"`
	KernelError string `json:"kernel_error,omitempty"`
	// KernelStats is what the kernel has done so far; nil for a host.
	KernelStats *standin.Stats `json:"kernel_stats,omitempty"`
	// Transports are those that its links use: of udp, tcp and shm.
	Transports []string `json:"transports"`
	// ReceiveBuffer is the size in bytes that the kernel granted the rank's
	// UDP socket, of ReceiveBufferAsked; both are 0 without one.
	ReceiveBuffer      int `json:"receive_buffer"`
	ReceiveBufferAsked int `json:"receive_buffer_asked"`
	// Offload is what the kernel does for that socket; nil without one.
	Offload *Offload `json:"offload,omitempty"`
	// Ring is the size in bytes of the ring to each peer that the rank shares
	// memory with; 0 without one.
	Ring int `json:"shm_ring"`
	// Shared is with how many peers it does so at this moment, and SingleCopy with
	// how many of those long messages are copied once only, from the sender's
	// memory straight to the receiver's.
	Shared     int `json:"shm_links"`
	SingleCopy int `json:"shm_single_copy"`
	// Crowded: the configuration has more ranks on the rank's host than that has
	// cores, so whoever waits for a packet lets other processes run.
	Oversubscribed bool `json:"oversubscribed"`
	// Attached are the programs that have the rank.
	Attached []Program    `json:"attached,omitempty"`
	Engine   mpe.Snapshot `json:"engine"`
}

// Offload is what the kernel does for a UDP socket.
type Offload struct {
	// Batches: a system call moves many datagrams, and not one.
	Batches bool `json:"batches"`
	// Segmentation: the kernel cuts long messages into datagrams. Coalescing: it
	// puts them together again where they arrive.
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
	// Off: both were switched off, by limits.offload or by the environment.
	Off bool `json:"switched_off"`
	// Refused are the peers for which the kernel has refused to cut; the rank
	// does so itself since.
	Refused []OffloadRefused `json:"refused,omitempty"`
}

// OffloadRefused is a peer without segmentation.
type OffloadRefused struct {
	Peer int `json:"peer"`
	// Error is what the kernel has said.
	Error string `json:"error"`
}

// Program is a program that is attached to a rank.
type Program struct {
	PID int `json:"pid"`
	UID int `json:"uid"`
	// Seconds is how long it has had the rank.
	Seconds float64 `json:"seconds"`
	// Operations and Bytes are what it has under way.
	Operations int   `json:"operations"`
	Bytes      int64 `json:"bytes"`
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

// Member returns the entry of a rank, or nil.
func (s *Status) Member(rank int) *Member {
	if rank < 0 || rank >= len(s.Cluster) {
		return nil
	}
	return &s.Cluster[rank]
}
