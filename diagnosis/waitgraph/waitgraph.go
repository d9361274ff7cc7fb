// Package waitgraph finds cycles in graphs of which rank waits for which. It is pure.
package waitgraph

import (
	"maps"
	"slices"
)

// Graph maps each rank to the ranks that it waits for. Searches visit them in the listed order.
type Graph map[int][]int

// Components maps each rank to the number of its strongly connected component, by Tarjan's algorithm. A rank that is in
// no cycle forms its own component.
func (g Graph) Components() map[int]int {
	part, low, order := make(map[int]int), make(map[int]int), make(map[int]int)
	var open []int
	var visit func(rank int)
	visit = func(rank int) {
		order[rank] = len(order) + 1
		low[rank] = order[rank]
		open = append(open, rank)
		for _, peer := range g[rank] {
			switch {
			case order[peer] == 0:
				visit(peer)
				low[rank] = min(low[rank], low[peer])
			case part[peer] == 0:
				low[rank] = min(low[rank], order[peer])
			}
		}
		for low[rank] == order[rank] && part[rank] == 0 {
			last := open[len(open)-1]
			open = open[:len(open)-1]
			part[last] = order[rank]
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(g)) {
		if order[rank] == 0 {
			visit(rank)
		}
	}
	return part
}

// ShortestCycle returns the ranks of a shortest cycle that begins with the given ranks, each of which waits for the
// next. It returns nil if there is no such cycle.
func (g Graph) ShortestCycle(begin ...int) []int {
	first, from := begin[0], begin[len(begin)-1]
	cameFrom := map[int]int{}
	for todo := []int{from}; len(todo) > 0; todo = todo[1:] {
		for _, peer := range g[todo[0]] {
			if peer == first {
				back := []int{}
				for at := todo[0]; at != from; at = cameFrom[at] {
					back = append(back, at)
				}
				slices.Reverse(back)
				return append(slices.Clone(begin), back...)
			}
			if _, seen := cameFrom[peer]; !seen && peer != from {
				cameFrom[peer] = todo[0]
				todo = append(todo, peer)
			}
		}
	}
	return nil
}
