package digest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/diagnosis/waitgraph"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxCycles is the maximum number of cycles that a digest reports.
const maxCycles = 8

// Cycle is a sequence of ranks in which each rank waits for the next one, and the last rank waits for the first. It is
// a deadlock unless another pending operation lets one of the ranks continue.
type Cycle struct {
	Ranks []int `json:"ranks"`
	// Seconds is the time in seconds for which the cycle has existed, which is the age of its youngest wait.
	Seconds float64 `json:"age_seconds"`
	// Text describes the cycle without its age.
	Text string `json:"text"`
}

// findCycles returns the cycles in ws and marks their waits. It ignores waits that cannot contribute to a deadlock:
// brief waits; receives from any source, because any other rank may complete them; sends whose call is done, because
// they block nothing; and receives that have cleared the peer to send, because they wait for packets and not for
// another call. For each strongly connected component of the graph, it returns one cycle: the shortest one through the
// component's oldest wait.
func findCycles(ws []Wait) []Cycle {
	asks := make(map[pair]bool)
	for i := range ws {
		if w := &ws[i]; w.Direction == Send && w.For == protocol.ClearToSend {
			asks[pair{w.Rank, w.Peer}] = true
		}
	}
	blocks := func(w *Wait) bool {
		return w.isBlocking() && !(w.Direction == Receive && w.For == protocol.Data && asks[pair{w.Peer, w.Rank}])
	}
	graph, edges := waitgraph.Graph{}, map[pair][]*Wait{}
	for i := range ws {
		if w := &ws[i]; blocks(w) {
			at := pair{w.Rank, w.Peer}
			if edges[at] == nil {
				graph[w.Rank] = append(graph[w.Rank], w.Peer)
			}
			edges[at] = append(edges[at], w)
		}
	}
	for _, peers := range graph {
		slices.Sort(peers)
	}
	found := []Cycle{}
	part := graph.Components()
	done := make(map[int]bool) // indexed by component
	for i := range ws {        // oldest first
		wait := &ws[i]
		if len(found) == maxCycles {
			break
		}
		// Only ranks in the same component are part of a cycle.
		if !blocks(wait) || part[wait.Rank] != part[wait.Peer] || done[part[wait.Rank]] {
			continue
		}
		done[part[wait.Rank]] = true
		found = append(found, newCycle(graph.ShortestCycle(wait.Rank, wait.Peer), edges))
	}
	return found
}

// isBlocking reports whether the rank cannot continue until its peer acts.
func (w *Wait) isBlocking() bool { return w.Peer != AnyRank && w.Age() != Brief && !w.Cancelled }

// newCycle returns the cycle formed by the given ranks, and marks the waits that are part of it.
func newCycle(ranks []int, edges map[pair][]*Wait) Cycle {
	cycle := Cycle{Ranks: ranks, Seconds: math.Inf(1), Text: cycleText(ranks)}
	for i, rank := range ranks {
		edge := edges[pair{rank, ranks[(i+1)%len(ranks)]}]
		cycle.Seconds = min(cycle.Seconds, edge[0].Seconds) // the oldest wait between the two ranks
		for _, w := range edge {
			w.InCycle = true
		}
	}
	return cycle
}

// cycleText returns the text of a cycle, such as "cycle 2 → 0 → 1 → 2".
func cycleText(ranks []int) string {
	var b strings.Builder
	b.WriteString("cycle ")
	for i, rank := range ranks {
		if i < maxCycleRanks || i == len(ranks)-1 {
			fmt.Fprintf(&b, "%d → ", rank)
		} else if i == maxCycleRanks {
			b.WriteString("… → ")
		}
	}
	fmt.Fprintf(&b, "%d", ranks[0])
	return b.String()
}

// maxCycleRanks is the maximum number of ranks, excluding the last one, in the text of a cycle.
const maxCycleRanks = 8
