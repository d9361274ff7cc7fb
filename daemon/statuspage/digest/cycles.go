package digest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxCycles bounds the cycles that are reported.
const maxCycles = 8

// Cycle is a ring of ranks in which each waits for the next, and the last for the
// first. It is a deadlock unless one of them has another operation pending.
type Cycle struct {
	Ranks []int `json:"ranks"`
	// Seconds is how long the cycle has been closed: the age of its youngest wait.
	Seconds float64 `json:"age_seconds"`
	// Text is the cycle in words, without its age.
	Text string `json:"text"`
}

// cycles returns the cycles of waits, and marks the waits in them. Brief waits do not
// count, nor receives from any source, which any other rank may complete, nor sends whose call
// has ended, which block nobody. Each strongly
// connected component of the graph yields one cycle, a shortest through its oldest wait.
func cycles(ws []Wait) []Cycle {
	g := make(graph)
	for i := range ws {
		if w := &ws[i]; w.blocks() {
			if g[w.Rank] == nil {
				g[w.Rank] = make(map[int][]*Wait)
			}
			g[w.Rank][w.Peer] = append(g[w.Rank][w.Peer], w)
		}
	}
	found := []Cycle{}
	part := g.parts()
	done := make(map[int]bool) // by part
	for i := range ws {        // the oldest come first
		w := &ws[i]
		if len(found) == maxCycles {
			break
		}
		// Only within a part is there a way back.
		if !w.blocks() || part[w.Rank] != part[w.Peer] || done[part[w.Rank]] {
			continue
		}
		done[part[w.Rank]] = true
		found = append(found, g.close(w, g.path(w.Peer, w.Rank)))
	}
	return found
}

// blocks reports whether its rank goes on only if its peer acts.
func (w *Wait) blocks() bool { return w.Peer != AnyRank && w.Age() != Brief && !w.Cancelled }

// graph has the waits of one rank for another.
type graph map[int]map[int][]*Wait

// parts numbers the strongly connected parts of the graph, by Tarjan's algorithm.
func (g graph) parts() map[int]int {
	part, low, order := make(map[int]int), make(map[int]int), make(map[int]int)
	var open []int
	var visit func(rank int)
	visit = func(rank int) {
		order[rank] = len(order) + 1
		low[rank] = order[rank]
		open = append(open, rank)
		for peer := range g[rank] {
			if order[peer] == 0 {
				visit(peer)
				low[rank] = min(low[rank], low[peer])
			} else if part[peer] == 0 {
				low[rank] = min(low[rank], order[peer])
			}
		}
		for low[rank] == order[rank] && part[rank] == 0 {
			last := open[len(open)-1]
			open = open[:len(open)-1]
			part[last] = order[rank]
		}
	}
	for rank := range g {
		if order[rank] == 0 {
			visit(rank)
		}
	}
	return part
}

// path returns a shortest path, both ends included, or nil if there is none.
func (g graph) path(from, to int) []int {
	cameFrom := map[int]int{from: from}
	for at := []int{from}; len(at) > 0; at = at[1:] {
		here := at[0]
		if here == to {
			back := []int{to}
			for here != from {
				here = cameFrom[here]
				back = append(back, here)
			}
			slices.Reverse(back)
			return back
		}
		for _, peer := range slices.Sorted(maps.Keys(g[here])) {
			if _, seen := cameFrom[peer]; !seen {
				cameFrom[peer] = here
				at = append(at, peer)
			}
		}
	}
	return nil
}

// close returns the cycle of a wait and the path back from its peer, and marks its waits.
func (g graph) close(w *Wait, back []int) Cycle {
	ranks := slices.Concat([]int{w.Rank}, back[:len(back)-1])
	c := Cycle{Ranks: ranks, Seconds: w.Seconds}
	for i, rank := range ranks {
		edge := g[rank][ranks[(i+1)%len(ranks)]]
		c.Seconds = min(c.Seconds, edge[0].Seconds) // the oldest of its pair
		for _, w := range edge {
			w.InCycle = true
		}
	}
	c.Text = cycleText(ranks)
	return c
}

// cycleText returns "cycle 2 → 0 → 1 → 2".
func cycleText(ranks []int) string {
	var b strings.Builder
	b.WriteString("cycle ")
	for i, rank := range ranks {
		if i < maxCycleText || i == len(ranks)-1 {
			fmt.Fprintf(&b, "%d → ", rank)
		} else if i == maxCycleText {
			b.WriteString("… → ")
		}
	}
	fmt.Fprintf(&b, "%d", ranks[0])
	return b.String()
}

// maxCycleText bounds the ranks of a cycle that its text names, beside the last.
const maxCycleText = 8
