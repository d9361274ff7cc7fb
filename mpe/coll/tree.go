package coll

import "math/bits"

// A binomial tree of n nodes with root 0: the parent of a node is the number without
// its lowest bit, so that the subtree of a node is a range of numbers that begins
// with it.

// virtual numbers the ranks from the root on.
func (c *Call) virtual() int { return (c.Rank - c.Root + c.Ranks) % c.Ranks }

// actual is the rank with the virtual number v.
func (c *Call) actual(v int) int { return (v + c.Root) % c.Ranks }

// parent is that of node v > 0.
func parent(v int) int { return v & (v - 1) }

// subtree is the number of nodes in the subtree of node v, itself included.
func subtree(v, n int) int {
	if v == 0 {
		return n
	}
	return min(v&-v, n-v)
}

// firstChild is the distance from node v to its farthest child, which is a power of
// two; the others are at the lower powers. It is 0 if there is none.
func firstChild(v, n int) int {
	size := subtree(v, n)
	if size < 2 {
		return 0
	}
	return 1 << (bits.Len(uint(size-1)) - 1)
}
