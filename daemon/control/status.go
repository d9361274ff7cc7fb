package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/mpe"
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
	// Unread are the ranks whose answers were not read, as those of the job are too long together.
	Unread []int `json:"unread,omitempty"`
	// Foreign is the user of a job that belongs to another user than the caller; nil otherwise. The processes of such a
	// job may answer anything.
	Foreign *int `json:"foreign_user,omitempty"`
	// SilentProcesses are the processes of Silent that could be found.
	SilentProcesses []SilentProcess `json:"silent_processes,omitempty"`
	// HTTP is the URL of metrics, health and status page; empty if HTTP is disabled.
	HTTP string `json:"http,omitempty"`
	// Cluster lists all ranks in rank order.
	Cluster []Member `json:"cluster"`
	// Ranks lists the local ranks in rank order.
	Ranks []LocalRank `json:"ranks"`
	// Failures lists the last operations of the local ranks that failed, at most MaxFailures, the newest first. It is
	// empty for a job.
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
	// KernelHolds is why the program of a kernel exec exchanges no messages, or the signal with
	// which a role in simulation holds its messages up, since which cycle, and how. It is empty for
	// other kernels.
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

// validate returns an error if this is not the status of a daemon, or of a job: it has a version, a process and ranks,
// and names no others.
func (s *Status) validate(source string) error {
	size := len(s.Cluster)
	switch {
	case s.Version == "" || s.Job == "" && (s.PID <= 0 || size == 0):
		return Errorf(Failed, "%s: the answer has no version, process or ranks: no zrlmpid listens there", source)
	case s.misnumbered():
		return Errorf(Failed, "%s: the answer names ranks beyond those of its cluster, 0 to %d: no zrlmpid "+
			"listens there", source, size-1)
	}
	return nil
}

// misnumbered reports whether the status names ranks that the cluster does not have.
func (s *Status) misnumbered() bool {
	foreign := func(rank int) bool { return rank < 0 || rank >= len(s.Cluster) }
	for i := range s.Cluster {
		if s.Cluster[i].Rank != i {
			return true
		}
	}
	for i := range s.Ranks {
		r := &s.Ranks[i]
		ofForeign := func(p mpe.PeerSnapshot) bool { return foreign(p.Rank) }
		if foreign(r.Rank) || slices.ContainsFunc(r.Engine.Peers, ofForeign) {
			return true
		}
	}
	return false
}

// Member returns the cluster's entry of a rank, or nil.
func (s *Status) Member(rank int) *Member {
	if rank < 0 || rank >= len(s.Cluster) {
		return nil
	}
	return &s.Cluster[rank]
}

// Doubts returns why the status may be incomplete or wrong, each in a sentence; none for the status of a daemon.
func (s *Status) Doubts() []string {
	var doubts []string
	if s.Foreign != nil {
		doubts = append(doubts, fmt.Sprintf("job %s belongs to user %d, whose processes may answer anything: nothing "+
			"of it is verified but their numbers", s.Job, *s.Foreign))
	}
	if len(s.Silent) > 0 {
		doubts = append(doubts, fmt.Sprintf("the processes of these ranks do not answer: %s", numbers(s.Silent)))
	}
	if len(s.Unread) > 0 {
		doubts = append(doubts, fmt.Sprintf("the answers of these ranks were not read, as they are too long together "+
			"(16 MiB, or 4 MiB of a job of another user): %s", numbers(s.Unread)))
	}
	return doubts
}

// maxNumbers bounds a list of ranks in a sentence.
const maxNumbers = 32

func numbers(ranks []int) string {
	text := strings.Trim(fmt.Sprint(ranks[:min(len(ranks), maxNumbers)]), "[]")
	if more := len(ranks) - maxNumbers; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
