package waitgraph

import (
	"slices"
	"testing"
)

func TestShortestCycle(t *testing.T) {
	for _, tt := range []struct {
		graph       Graph
		begin, want []int
	}{
		{Graph{0: {1}, 1: {0}}, []int{0}, []int{0, 1}},
		{Graph{0: {1}, 1: {0}}, []int{1, 0}, []int{1, 0}},
		{Graph{0: {0}}, []int{0}, []int{0}},
		{Graph{0: {1}, 1: {2}}, []int{0}, nil},
		{Graph{0: {1}, 1: {2, 3}, 2: {3}, 3: {0}}, []int{0}, []int{0, 1, 3}},
		{Graph{0: {1}, 1: {2, 3}, 2: {3}, 3: {0}}, []int{1, 2}, []int{1, 2, 3, 0}},
		{Graph{0: {1}, 1: {2}, 2: {1}}, []int{0}, nil},
	} {
		if got := tt.graph.ShortestCycle(tt.begin...); !slices.Equal(got, tt.want) {
			t.Errorf("%v from %v: %v, want %v", tt.graph, tt.begin, got, tt.want)
		}
	}
}

// TestComponents checks that two ranks are in the same component if each can be reached from the other.
func TestComponents(t *testing.T) {
	part := Graph{0: {1}, 1: {2}, 2: {1, 3}, 3: {4}, 4: {5}, 5: {3}, 7: {0}}.Components()
	reach := [][]int{{0}, {1, 2}, {3, 4, 5}, {7}}
	numbers := map[int]bool{}
	for _, ranks := range reach {
		for _, r := range ranks {
			if part[r] == 0 || part[r] != part[ranks[0]] {
				t.Errorf("rank %d is in part %d, and rank %d in %d", r, part[r], ranks[0], part[ranks[0]])
			}
		}
		numbers[part[ranks[0]]] = true
	}
	if len(numbers) != len(reach) {
		t.Errorf("the parts are %v", part)
	}
}
