package digest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Severity is the severity of a problem.
type Severity int

// A Failure persists until somebody fixes it; a Warning may disappear without action.
const (
	Warning Severity = iota
	Failure
)

// String returns "failure" or "warning".
func (s Severity) String() string {
	if s == Failure {
		return "failure"
	}
	return "warning"
}

// MarshalText returns the same text as String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Problem describes a fault or a degradation.
type Problem struct {
	Severity Severity `json:"severity"`
	// Rank is the local rank, or -1 if the problem concerns the whole daemon.
	Rank int    `json:"rank"`
	Text string `json:"text"`
	// Action is the recommended action, or empty if none is known.
	Action string `json:"action,omitempty"`
}

// NoProblems returns the text to show for a daemon that has no problems. The text includes the number of recent
// failures.
func NoProblems(s *state.Status) string {
	n := 0
	for i := range s.Failures {
		n += max(1, s.Failures[i].Count)
	}
	if n == 0 {
		return "no problems found"
	}
	least := ""
	if len(s.Failures) >= state.MaxFailures {
		least = "at least "
	}
	return fmt.Sprintf("%s%s failed, the last one at %s; no other problems found",
		least, words.Plural(n, "operation"), s.Failures[0].Time.Local().Format(time.DateTime))
}

// findProblems returns the problems in a status, failures first.
func findProblems(s *state.Status) []Problem {
	ps := []Problem{}
	for i := range s.Ranks {
		ps = append(ps, rankProblems(&s.Ranks[i])...)
	}
	for _, doubt := range s.Warnings() {
		ps = append(ps, Problem{Warning, -1, doubt, ""})
	}
	if n := s.LostLogLines; n > 0 {
		ps = append(ps, Problem{Warning, -1, words.Plural(int(n), "log line") + " lost",
			"make sure that the log can be written and is read fast enough"})
	}
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(b.Severity, a.Severity) })
	return ps
}

func rankProblems(rank *state.Rank) []Problem {
	var ps []Problem
	if rank.KernelState == state.KernelFailed {
		ps = append(ps, Problem{Failure, rank.Rank,
			fmt.Sprintf("rank %d: kernel %s failed: %s", rank.Rank, rank.Kernel, rank.KernelError), "restart zrlmpid"})
	}
	if k := rank.KernelStats; k != nil && k.Simulation != nil && k.Simulation.Fault {
		ps = append(ps, Problem{Failure, rank.Rank, fmt.Sprintf("rank %d: its role, in simulation, breaks the rules of "+
			"its interface: %s", rank.Rank, rank.KernelBlockReason), "correct the role, and restart zrlmpid"})
	}
	if n := rank.Engine.Disagreements; n > 0 {
		ps = append(ps, Problem{Warning, rank.Rank, fmt.Sprintf("rank %d: members of %s have different collectives "+
			"settings and use the built-in table", rank.Rank, words.Plural(int(n), "communicator")),
			"give all ranks the same collectives section and table"})
	}
	for i := range rank.Engine.Peers {
		peer := &rank.Engine.Peers[i]
		if peer.Refuses != "" {
			ps = append(ps, Problem{Failure, rank.Rank,
				fmt.Sprintf("rank %d refuses to send to rank %d: %s", rank.Rank, peer.Rank, peer.Refuses),
				fmt.Sprintf("when rank %d has recovered: zrlctl reset %d --from %d", peer.Rank, peer.Rank, rank.Rank)})
		}
		if peer.NetworkError != "" {
			ps = append(ps, Problem{Warning, rank.Rank, peer.NetworkError, ""})
		}
	}
	if rank.ReceiveBuffer < rank.ReceiveBufferRequested {
		ps = append(ps, Problem{Warning, rank.Rank,
			fmt.Sprintf("rank %d: the kernel granted a receive buffer of %v instead of %v",
				rank.Rank, config.Size(rank.ReceiveBuffer), config.Size(rank.ReceiveBufferRequested)),
			"raise net.core.rmem_max"})
	}
	if path := rank.Path; path != nil {
		if path.Error != "" {
			ps = append(ps, Problem{Warning, rank.Rank,
				fmt.Sprintf("rank %d sends and receives by the kernel's socket: %s", rank.Rank, path.Error), ""})
		}
		for _, p := range path.ByKernel {
			if !p.Unresolved && !p.Local {
				ps = append(ps, Problem{Warning, rank.Rank, fmt.Sprintf("rank %d sends to rank %d by the kernel's socket: %s",
					rank.Rank, p.Peer, p.Reason), ""})
			}
		}
	}
	if rank.Offload != nil {
		for _, p := range rank.Offload.Refused {
			ps = append(ps, Problem{Warning, rank.Rank, fmt.Sprintf("rank %d: the kernel refused UDP segmentation to "+
				"rank %d: %s", rank.Rank, p.Peer, p.Error), ""})
		}
	}
	return ps
}
