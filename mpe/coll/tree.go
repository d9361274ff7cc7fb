package coll

import "math/bits"

// The functions below describe a binomial tree of n nodes with root 0. Clearing the lowest set bit of a node's number
// yields its parent, so the subtree of a node is a range of numbers that begins with the node.

// virtualRank returns the caller's virtual number: its distance after the root, modulo the number of ranks.
func (c *Call) virtualRank() int { return (c.Rank - c.Root + c.Ranks) % c.Ranks }

// actualRank returns the rank with virtual number v.
func (c *Call) actualRank(v int) int { return (v + c.Root) % c.Ranks }

// parent returns the parent of node v > 0.
func parent(v int) int { return v & (v - 1) }

// subtree returns the number of nodes in the subtree of node v, including v.
func subtree(v, n int) int {
	if v == 0 {
		return n
	}
	return min(v&-v, n-v)
}

// firstChild returns the distance from node v to its farthest child, or 0 for a leaf. The distance is a power of two;
// the other children are at the lower powers of two.
func firstChild(v, n int) int {
	size := subtree(v, n)
	if size < 2 {
		return 0
	}
	return 1 << (bits.Len(uint(size-1)) - 1)
}
