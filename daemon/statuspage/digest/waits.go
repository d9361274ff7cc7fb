package digest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Wait describes an operation that waits for a packet.
type Wait struct {
	// Rank is the waiting rank. Peer is the rank that it waits for, or AnyRank for a receive from any source.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
	// Remote is set if Rank is not one of the daemon's ranks. The daemon then infers the wait from a packet sent by
	// Rank.
	Remote    bool      `json:"remote,omitempty"`
	Direction Direction `json:"direction"`
	// For is the type of packet that Rank waits for. It is 0 if the message is held back behind others.
	For protocol.Type `json:"waits_for,omitempty"`
	// Seconds is the age of the wait in seconds.
	Seconds float64 `json:"age_seconds"`
	// Bytes is the length of the message or, before a receive has matched one, of its buffer. It is 0 if it is unknown.
	Bytes int64 `json:"bytes,omitempty"`
	// Retransmissions is the number of the message's packets that were retransmitted. Queued is the number of messages
	// queued behind this message.
	Retransmissions int `json:"retransmissions,omitempty"`
	Queued          int `json:"queued,omitempty"`
	// Cancelled is set for a send whose call is complete although its transfer continues.
	Cancelled bool `json:"cancelled,omitempty"`
	// LaterOperations is the number of operations of the same rank that were started later and wait for the same peer.
	LaterOperations int `json:"also,omitempty"`
	// Text describes the wait without its age.
	Text string `json:"text"`
	// InCycle is set if the wait is part of a cycle.
	InCycle bool `json:"in_cycle,omitempty"`
}

// Direction is the direction of a message.
type Direction string

// Directions of messages.
const (
	Send    Direction = "send"
	Receive Direction = "receive"
)

// Age classifies waits by duration.
type Age int

// A Brief wait is normal; a Long wait needs attention.
const (
	Brief Age = iota
	Medium
	Long
)

// Minimum durations, in seconds, of waits of the classes Medium and Long.
const (
	mediumSeconds = 1
	longSeconds   = 10
)

// AgeOf returns the age class of a wait with the given duration.
func AgeOf(seconds float64) Age {
	switch {
	case seconds < mediumSeconds:
		return Brief
	case seconds < longSeconds:
		return Medium
	}
	return Long
}

// Age classifies the wait by its duration.
func (w *Wait) Age() Age { return AgeOf(w.Seconds) }

// Detail returns the details of a wait that its Text omits: length, retransmissions and queued messages.
func (w *Wait) Detail() string {
	var parts []string
	switch size := words.Bytes(float64(w.Bytes)); {
	case w.Bytes == 0:
	case w.Direction == Receive && w.For == protocol.SendRequest:
		parts = append(parts, "buffer of "+size)
	default:
		parts = append(parts, "message of "+size)
	}
	if w.Retransmissions > 0 {
		parts = append(parts, words.Plural(w.Retransmissions, "retransmission"))
	}
	if w.Queued > 0 {
		parts = append(parts, words.Plural(w.Queued, "message")+" queued behind it")
	}
	if w.LaterOperations > 0 {
		parts = append(parts, "and "+words.Plural(w.LaterOperations, "later operation"))
	}
	if w.Remote {
		known := protocol.SendRequest
		if w.Direction == Receive {
			known = protocol.ClearToSend
		}
		parts = append(parts, fmt.Sprintf("known from its %v", known))
	}
	return strings.Join(parts, ", ")
}

// collectWaits returns the waits in a status, oldest first. It returns one entry for each rank and peer, and counts
// further waits in that entry. It omits the receive in which a stand-in's kernel waits for work.
func collectWaits(s *state.Status) []Wait {
	ws := []Wait{}
	local := make(map[int]bool, len(s.Ranks))
	for i := range s.Ranks {
		local[s.Ranks[i].Rank] = true
	}
	for i := range s.Ranks {
		rank := &s.Ranks[i]
		if w := rank.Engine.AnySource; w != nil && rank.Role == state.RoleHost {
			ws = append(ws, newWait(rank.Rank, AnyRank, Receive, w, 0))
		}
		for j := range rank.Engine.Peers {
			peer := &rank.Engine.Peers[j]
			if w := peer.Sending; w != nil {
				ws = append(ws, newWait(rank.Rank, peer.Rank, Send, w, peer.QueuedSends))
			}
			if w := peer.Receiving; w != nil && (rank.Role == state.RoleHost || w.State != handshake.WaitRequest) {
				ws = append(ws, newWait(rank.Rank, peer.Rank, Receive, w, peer.QueuedReceives))
			}
			// A local rank reports its own sends.
			if deferred := peer.Deferred; deferred != nil && !local[peer.Rank] {
				why := "has no matching receive posted"
				if peer.RequestsCleared() {
					why = "has cleared it and received no DATA"
				}
				ws = append(ws, Wait{
					Rank: peer.Rank, Peer: rank.Rank, Remote: true, Direction: Send, For: protocol.ClearToSend,
					Seconds: deferred.Seconds,
					Text: fmt.Sprintf("rank %d is blocked in a send (%s) to rank %d, which %s", peer.Rank, deferred.Call,
						rank.Rank, why),
				})
			}
			if k := peer.UnansweredClear; k != nil && !local[peer.Rank] {
				ws = append(ws, Wait{
					Rank: peer.Rank, Peer: rank.Rank, Remote: true, Direction: Receive, For: protocol.Data,
					Seconds: k.Seconds,
					Text: fmt.Sprintf("rank %d is blocked in a receive (%s) from rank %d, which has no matching send", peer.Rank,
						k.Call, rank.Rank),
				})
			}
		}
	}
	slices.SortStableFunc(ws, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Peer, b.Peer))
	})
	return oncePerPair(ws)
}

// oncePerPair keeps, of the sorted waits, only the first of each rank for each peer. It keeps a separate entry for
// sends whose call is complete.
func oncePerPair(ws []Wait) []Wait {
	type key struct {
		rank, peer int
		cancelled  bool
	}
	first := make(map[key]int)
	once := ws[:0]
	for i := range ws {
		k := key{ws[i].Rank, ws[i].Peer, ws[i].Cancelled}
		if at, ok := first[k]; ok {
			once[at].LaterOperations += 1 + ws[i].Queued
			continue
		}
		first[k] = len(once)
		once = append(once, ws[i])
	}
	return once
}

func newWait(rank, peer int, direction Direction, w *state.Wait, queued int) Wait {
	return Wait{
		Rank: rank, Peer: peer, Direction: direction, For: w.WaitsFor, Seconds: w.Seconds,
		Bytes: int64(w.Words) * protocol.WordLen, Retransmissions: w.Retransmissions, Queued: queued,
		Cancelled: w.Cancelled, Text: w.Text,
	}
}
