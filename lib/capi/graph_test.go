package capi

import (
	"slices"
	"testing"
	"unsafe"
)

// TestGraph uses a graph of three nodes, 0 → 1, 2; 1 → 0; 2 → 0, 2, whose edges all ranks pass.
func TestGraph(t *testing.T) {
	onRanks(t, 4, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		me := r.rankIn("COMM_WORLD")
		_, index := ints(2, 3, 5)
		_, edges := ints(1, 2, 0, 0, 2)
		graph, twin := newOut(), newOut()
		r.ok("Graph_create", "COMM_WORLD", 3, index, edges, 0, graph.at())
		kind, atKind := ints(9)
		if me == 3 { // not a node
			if !graph.null(r, kindComm) {
				r.t.Errorf("%s: rank 3 is in the graph", r.abi)
			}
			r.ok("Graph_map", "COMM_WORLD", 3, index, edges, atKind)
			if kind[0] != int32(r.l.abi.undefined) {
				r.t.Errorf("%s: mapped to %d", r.abi, kind[0])
			}
			return
		}
		r.ok("Comm_dup", graph.get(r), twin.at())
		for _, c := range []handle{graph.get(r), twin.get(r)} { // a duplicate has the same graph
			if r.ok("Topo_test", c, atKind); kind[0] != int32(r.constant("GRAPH")) {
				r.t.Errorf("%s: topology %d", r.abi, kind[0])
			}
			n, at := ints(9, 9)
			if r.ok("Graphdims_get", c, at, unsafe.Add(at, 4)); !slices.Equal(n, []int32{3, 5}) {
				r.t.Errorf("%s: %v nodes and edges", r.abi, n)
			}
			all, atAll := ints(9, 9, 9, 9, 9, 9, 9, 9, 9)
			// The list must not exceed the caller's array.
			if r.ok("Graph_get", c, 3, 4, atAll, unsafe.Add(atAll, 12)); !slices.Equal(all,
				[]int32{2, 3, 5, 1, 2, 0, 0, 9, 9}) {
				r.t.Errorf("%s: %v", r.abi, all)
			}
			for node, want := range [][]int32{{1, 2}, {0}, {0, 2}} {
				r.ok("Graph_neighbors_count", c, node, at)
				list, atList := ints(9, 9, 9)
				if r.ok("Graph_neighbors", c, node, 3, atList); int(n[0]) != len(want) ||
					!slices.Equal(list[:len(want)], want) || list[len(want)] != 9 {
					r.t.Errorf("%s: node %d has %d neighbours, %v, want %v", r.abi, node, n[0], list, want)
				}
				list, atList = ints(9, 9, 9)
				if r.ok("Graph_neighbors", c, node, 1, atList); list[0] != want[0] || list[1] != 9 {
					r.t.Errorf("%s: %v of node %d in an array of one", r.abi, list, node)
				}
			}
		}
		got, atGot := ints(9, 9)
		_, atMe := ints(int32(me))
		r.ok("Neighbor_allgather", atMe, 1, "INT", atGot, 1, "INT", graph.get(r))
		if want := [][]int32{{1, 2}, {0, 9}, {0, 2}}[me]; !slices.Equal(got, want) {
			r.t.Errorf("%s: rank %d got %v, want %v", r.abi, me, got, want)
		}
		r.ends(r.call("Graph_neighbors", graph.get(r), 3, 3, atGot), "ERR_RANK")
		r.ends(r.call("Cart_get", graph.get(r), 1, atGot, atGot, atGot), "ERR_TOPOLOGY")
		r.ends(r.call("Dist_graph_neighbors_count", graph.get(r), atGot, atGot, atGot), "ERR_TOPOLOGY")
		r.ok("Comm_free", twin.at())
		r.ok("Comm_free", graph.at())
	})
}

// neighbors is the result of MPI_Dist_graph_neighbors: pairs of rank and weight, sorted.
type neighbors struct{ sources, destinations [][2]int32 }

func (r *rank) distNeighbors(c handle, weighted bool) (got neighbors) {
	r.t.Helper()
	n, at := ints(9, 9, 9)
	r.ok("Dist_graph_neighbors_count", c, at, unsafe.Add(at, 4), unsafe.Add(at, 8))
	if (n[2] != 0) != weighted {
		r.t.Errorf("%s: weighted %d", r.abi, n[2])
	}
	const room = 8
	list, atList := ints(make([]int32, 4*room)...)
	column := func(i int) unsafe.Pointer { return unsafe.Add(atList, 4*room*i) }
	if weighted {
		r.ok("Dist_graph_neighbors", c, int(n[0]), column(0), column(1), int(n[1]), column(2), column(3))
	} else {
		r.ok("Dist_graph_neighbors", c, int(n[0]), column(0), "UNWEIGHTED", int(n[1]), column(2), "UNWEIGHTED")
	}
	pairs := func(n int32, at int) (out [][2]int32) {
		for i := range int(n) {
			out = append(out, [2]int32{list[at+i], list[at+room+i]})
		}
		slices.SortFunc(out, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
		return out
	}
	return neighbors{pairs(n[0], 0), pairs(n[1], 2*room)}
}

// TestDistGraph makes the same graph, r → r+1 with weight 10+r and r → 0 with weight 20+r, from each rank's own
// edges and from edges that arbitrary ranks pass.
func TestDistGraph(t *testing.T) {
	const ranks = 3
	onRanks(t, ranks, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		me := int32(r.rankIn("COMM_WORLD"))
		next, previous := (me+1)%ranks, (me+ranks-1)%ranks
		var want neighbors
		want.destinations = [][2]int32{{next, 10 + me}, {0, 20 + me}}
		want.sources = [][2]int32{{previous, 10 + previous}}
		if me == 0 {
			want.sources = append(want.sources, [2]int32{0, 20}, [2]int32{1, 21}, [2]int32{2, 22})
		}
		var flat [4][]int32 // in the format of the calls
		for _, p := range want.sources {
			flat[0], flat[1] = append(flat[0], p[0]), append(flat[1], p[1])
		}
		for _, p := range want.destinations {
			flat[2], flat[3] = append(flat[2], p[0]), append(flat[3], p[1])
		}
		for _, list := range [][][2]int32{want.sources, want.destinations} {
			slices.SortFunc(list, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
		}
		at := func(i int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(flat[i])) }
		same := func(what string, c handle, weighted bool) {
			t.Helper()
			got, want := r.distNeighbors(c, weighted),
				neighbors{slices.Clone(want.sources), slices.Clone(want.destinations)}
			if !weighted {
				for _, list := range [][][2]int32{want.sources, want.destinations} {
					for i := range list {
						list[i][1] = 0
					}
				}
			}
			if !slices.Equal(got.sources, want.sources) || !slices.Equal(got.destinations, want.destinations) {
				r.t.Errorf("%s, %s: rank %d has %v, want %v", r.abi, what, me, got, want)
			}
		}
		kind, atKind := ints(9)
		adjacent, plain, general, twin := newOut(), newOut(), newOut(), newOut()
		r.ok("Dist_graph_create_adjacent", "COMM_WORLD", len(flat[0]), at(0), at(1), 2, at(2), at(3), "INFO_NULL", 0,
			adjacent.at())
		if r.ok("Topo_test", adjacent.get(r), atKind); kind[0] != int32(r.constant("DIST_GRAPH")) {
			r.t.Errorf("%s: topology %d", r.abi, kind[0])
		}
		same("adjacent", adjacent.get(r), true)
		r.ok("Comm_dup", adjacent.get(r), twin.at())
		same("duplicate", twin.get(r), true)
		r.ok("Dist_graph_create_adjacent", "COMM_WORLD", len(flat[0]), at(0), "UNWEIGHTED", 2, at(2), "UNWEIGHTED",
			"INFO_NULL", 0, plain.at())
		same("without weights", plain.get(r), false)

		// Rank 1 passes the edges of 0 and 1, and rank 2 its own.
		switch me {
		case 0:
			r.ok("Dist_graph_create", "COMM_WORLD", 0, nil, nil, nil, "WEIGHTS_EMPTY", "INFO_NULL", 0, general.at())
		case 1:
			_, sources := ints(0, 1, 0)
			_, degrees := ints(1, 2, 1)
			_, destinations := ints(1, 2, 0, 0)
			_, weights := ints(10, 11, 21, 20)
			r.ok("Dist_graph_create", "COMM_WORLD", 3, sources, degrees, destinations, weights, "INFO_NULL", 0,
				general.at())
		case 2:
			_, source := ints(2)
			_, degree := ints(2)
			_, destinations := ints(0, 0)
			_, weights := ints(12, 22)
			r.ok("Dist_graph_create", "COMM_WORLD", 1, source, degree, destinations, weights, "INFO_NULL", 0,
				general.at())
		}
		same("of any rank's edges", general.get(r), true)

		// Received values are in the order of the sources.
		got, atGot := ints(9, 9, 9, 9)
		_, atMe := ints(me)
		r.ok("Neighbor_allgather", atMe, 1, "INT", atGot, 1, "INT", adjacent.get(r))
		if !slices.Equal(got[:len(flat[0])], flat[0]) {
			r.t.Errorf("%s: rank %d got %v, want %v", r.abi, me, got, flat[0])
		}
		r.ends(r.call("Graph_neighbors_count", adjacent.get(r), 0, atGot), "ERR_TOPOLOGY")
		_, minus := ints(-1)
		r.ends(r.call("Dist_graph_create", "COMM_WORLD", 1, atMe, minus, atMe, "UNWEIGHTED", "INFO_NULL", 0, twin.at()),
			"ERR_ARG", "a source of -1 edges")
		for _, c := range []out{adjacent, twin, plain, general} {
			r.ok("Comm_free", c.at())
		}
	})
}
