package digest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// Severity says how bad something is.
type Severity int

// What is Bad does not go away by itself; a Warning may.
const (
	Warning Severity = iota
	Bad
)

// MarshalText makes a word of it.
func (s Severity) MarshalText() ([]byte, error) {
	if s == Bad {
		return []byte("bad"), nil
	}
	return []byte("warning"), nil
}

// Trouble is something that is broken, or worse than it could be.
type Trouble struct {
	Severity Severity `json:"severity"`
	// Rank is the local one, or -1 if it is the daemon's trouble.
	Rank int    `json:"rank"`
	Text string `json:"text"`
	// Do says what to do about it, if that is known.
	Do string `json:"do,omitempty"`
}

// troubles finds what is broken, the worst first.
func troubles(s *control.Status) []Trouble {
	ts := []Trouble{}
	for i := range s.Ranks {
		ts = append(ts, rankTroubles(&s.Ranks[i])...)
	}
	if s.LostLogLines > 0 {
		ts = append(ts, Trouble{Warning, -1, fmt.Sprintf("%d log lines were lost", s.LostLogLines), "the log is read too slowly, or cannot be written"})
	}
	slices.SortStableFunc(ts, func(a, b Trouble) int { return cmp.Compare(b.Severity, a.Severity) })
	return ts
}

func rankTroubles(r *control.LocalRank) []Trouble {
	var ts []Trouble
	if r.KernelState == control.KernelFailed {
		ts = append(ts, Trouble{Bad, r.Rank, fmt.Sprintf("rank %d: kernel %s failed: %s", r.Rank, r.Kernel, r.KernelError), ""})
	}
	if n := r.Engine.Disagreements; n > 0 {
		ts = append(ts, Trouble{Warning, r.Rank, fmt.Sprintf("rank %d is configured differently for collective calls than other members of %d of its communicators", r.Rank, n),
			"give all ranks the same collectives section and table; until then the built-in table counts"})
	}
	for i := range r.Engine.Peers {
		p := &r.Engine.Peers[i]
		if p.Refuses != "" {
			ts = append(ts, Trouble{Bad, r.Rank, fmt.Sprintf("rank %d refuses to send to rank %d: %s", r.Rank, p.Rank, p.Refuses),
				fmt.Sprintf("once rank %d is well again: zrlctl reset %d --from %d", p.Rank, p.Rank, r.Rank)})
		}
		if p.NetworkError != "" {
			ts = append(ts, Trouble{Warning, r.Rank, p.NetworkError, ""})
		}
	}
	if r.ReceiveBuffer < r.ReceiveBufferAsked {
		ts = append(ts, Trouble{Warning, r.Rank, fmt.Sprintf("rank %d has a receive buffer of %v, and asked for %v",
			r.Rank, config.Size(r.ReceiveBuffer), config.Size(r.ReceiveBufferAsked)), "raise net.core.rmem_max"})
	}
	if r.Offload != nil {
		for _, p := range r.Offload.Refused {
			ts = append(ts, Trouble{Warning, r.Rank, fmt.Sprintf("rank %d has no segmentation to rank %d: the kernel refuses (%s)", r.Rank, p.Peer, p.Error), ""})
		}
	}
	return ts
}
