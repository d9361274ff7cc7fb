package state

import (
	"fmt"
	"strings"
	"time"
)

// Status describes the state of a daemon or a job at one time.
type Status struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Config is the source of the configuration: a file name, or "standard input".
	Config string `json:"config"`
	// Started is the time at which all sockets were bound. Uptime is the time since Started in seconds.
	Started time.Time `json:"started"`
	Uptime  float64   `json:"uptime_seconds"`
	// LostLogLines counts log lines discarded because the log was full or not writable.
	LostLogLines uint64 `json:"lost_log_lines"`
	// Job is the name of a job, or empty for a daemon. For a job, Version is the version of the caller, and Silent
	// lists the ranks on this host whose processes do not answer.
	Job    string `json:"job,omitempty"`
	Silent []int  `json:"silent,omitempty"`
	// UnreadRanks lists the ranks whose answers were not read because the job's answers are too long in total.
	UnreadRanks []int `json:"unread,omitempty"`
	// ForeignUser is the user who owns the job, if that is not the caller, or nil. The processes of another user's job
	// are not trusted.
	ForeignUser *int `json:"foreign_user,omitempty"`
	// SilentProcesses lists the known processes that belong to the ranks in Silent.
	SilentProcesses []SilentProcess `json:"silent_processes,omitempty"`
	// HTTP is the URL at which the metrics, the health check and the status page are served. It is empty if HTTP is
	// disabled.
	HTTP string `json:"http,omitempty"`
	// Cluster lists all ranks in rank order.
	Cluster []Member `json:"cluster"`
	// Ranks lists the local ranks in rank order.
	Ranks []Rank `json:"ranks"`
	// Failures lists up to MaxFailures failures of the local ranks, newest first. It is empty for a job.
	Failures []Failure `json:"recent_failures"`
}

// Member is one rank of the cluster.
type Member struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	Kind    Kind   `json:"kind"`
	Role    Role   `json:"role,omitempty"`
	Kernel  string `json:"kernel,omitempty"`
	// Profile and Transport describe the link to this rank from the lowest other rank that the daemon runs.
	Profile   Profile   `json:"profile,omitempty"`
	Transport Transport `json:"transport,omitempty"`
}

// Member returns the entry of Cluster that describes a rank, or nil.
func (s *Status) Member(rank int) *Member {
	if rank < 0 || rank >= len(s.Cluster) {
		return nil
	}
	return &s.Cluster[rank]
}

// Warnings returns the reasons, as sentences, why the status of a job may be incomplete or wrong.
func (s *Status) Warnings() []string {
	var doubts []string
	if s.ForeignUser != nil {
		doubts = append(doubts, fmt.Sprintf("job %s belongs to user %d, whose processes are not trusted: nothing "+
			"of it is verified but their numbers", s.Job, *s.ForeignUser))
	}
	if len(s.Silent) > 0 {
		doubts = append(doubts, fmt.Sprintf("the processes of these ranks do not answer: %s", formatRanks(s.Silent)))
	}
	if len(s.UnreadRanks) > 0 {
		doubts = append(doubts, fmt.Sprintf("the answers of these ranks were not read, as they are too long together "+
			"(16 MiB, or 4 MiB of a job of another user): %s", formatRanks(s.UnreadRanks)))
	}
	return doubts
}

// maxNumbers limits how many ranks a sentence lists.
const maxNumbers = 32

func formatRanks(ranks []int) string {
	text := strings.Trim(fmt.Sprint(ranks[:min(len(ranks), maxNumbers)]), "[]")
	if more := len(ranks) - maxNumbers; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// SilentProcess describes a process that belongs to a rank and does not answer.
type SilentProcess struct {
	Rank int `json:"rank"`
	PID  int `json:"pid"`
	// Stopped means that a signal or a debugger has stopped the process.
	Stopped bool `json:"stopped"`
}
