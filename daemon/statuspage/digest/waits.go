package digest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Wait is a message that waits for something.
type Wait struct {
	// Rank waits for Peer, which is AnyRank for a receive from any source.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
	// Remote: the rank that waits is not one of the daemon's, which knows of it by
	// its SEND_REQUEST.
	Remote bool `json:"remote,omitempty"`
	// Direction is that of the message: send or receive.
	Direction string `json:"direction"`
	// For is a packet type, or empty for what is held back.
	For string `json:"waits_for,omitempty"`
	// Seconds is for how long.
	Seconds float64 `json:"seconds"`
	// Bytes is the length of the message, or 0 if it is not known.
	Bytes int64 `json:"bytes,omitempty"`
	// Repeats is how often a packet was repeated, and Queued how many messages wait
	// behind this one.
	Retransmissions int `json:"retransmissions,omitempty"`
	Queued          int `json:"queued,omitempty"`
	// Text says it in words, but for the time.
	Text string `json:"text"`
	// InCycle: the wait is part of a cycle.
	InCycle bool `json:"in_cycle,omitempty"`
}

// The directions of messages.
const (
	Send    = "send"
	Receive = "receive"
)

// Age is how long something waits, as far as it makes a difference to whoever looks.
type Age int

// Messages that are Young are on their way; Old ones are why somebody looks.
const (
	Young Age = iota
	Waiting
	Old
)

// The bounds of ages in seconds.
const (
	youngSeconds = 1
	oldSeconds   = 10
)

// AgeOf returns the age of a wait.
func AgeOf(seconds float64) Age {
	switch {
	case seconds < youngSeconds:
		return Young
	case seconds < oldSeconds:
		return Waiting
	}
	return Old
}

// Age returns the wait's.
func (w *Wait) Age() Age { return AgeOf(w.Seconds) }

// waits finds who waits, the oldest first. A kernel that waits for work does not
// count.
func waits(s *control.Status) []Wait {
	ws := []Wait{}
	local := make(map[int]bool, len(s.Ranks))
	for i := range s.Ranks {
		local[s.Ranks[i].Rank] = true
	}
	for i := range s.Ranks {
		r := &s.Ranks[i]
		if w := r.Engine.AnySource; w != nil && r.Role == control.RoleHost {
			ws = append(ws, waitOf(r.Rank, AnyRank, Receive, w, 0))
		}
		for j := range r.Engine.Peers {
			p := &r.Engine.Peers[j]
			if w := p.Sending; w != nil {
				ws = append(ws, waitOf(r.Rank, p.Rank, Send, w, p.QueuedSends))
			}
			if w := p.Receiving; w != nil && (r.Role == control.RoleHost || w.State != handshake.WaitRequest.String()) {
				ws = append(ws, waitOf(r.Rank, p.Rank, Receive, w, p.QueuedReceives))
			}
			// A local rank tells of its own sends.
			if k := p.Deferred; k != nil && !local[p.Rank] {
				ws = append(ws, Wait{
					Rank: p.Rank, Peer: r.Rank, Remote: true, Direction: Send, For: protocol.ClearToSend.String(), Seconds: k.Seconds,
					Text: fmt.Sprintf("rank %d is blocked in a send (%s) to rank %d, which has no matching receive posted", p.Rank, k.Call, r.Rank),
				})
			}
			if k := p.UnansweredClear; k != nil && !local[p.Rank] {
				ws = append(ws, Wait{
					Rank: p.Rank, Peer: r.Rank, Remote: true, Direction: Receive, For: protocol.Data.String(), Seconds: k.Seconds,
					Text: fmt.Sprintf("rank %d is blocked in a receive (%s) from rank %d, which has no send for it", p.Rank, k.Call, r.Rank),
				})
			}
		}
	}
	slices.SortStableFunc(ws, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Peer, b.Peer))
	})
	return ws
}

func waitOf(rank, peer int, direction string, w *mpe.WaitSnapshot, queued int) Wait {
	return Wait{
		Rank: rank, Peer: peer, Direction: direction, For: w.WaitsFor, Seconds: w.Seconds,
		Bytes: int64(w.Words) * protocol.WordLen, Retransmissions: w.Retransmissions, Queued: queued, Text: Timeless(w.Text),
	}
}

var since = regexp.MustCompile(`,? since [0-9][0-9.hmsnuµ]*`)

// Timeless is a text about a wait without how long it has lasted, so that it stays the
// same as long as the wait does.
func Timeless(text string) string { return since.ReplaceAllString(text, "") }
