package coll

import "math/bits"

// Cost is the cost of a call, as computed by an algorithm's cost function. Rounds, Bytes and Reduced are sums along the
// longest path, which takes Rounds·α + Bytes·β + Reduced·γ, where α is the fixed time per message, β the time per byte
// on the wire, and γ the time per byte of a reduction. Copies within a rank do not count.
type Cost struct {
	// Rounds is the number of sequential messages.
	Rounds int
	// Bytes is the number of bytes sent one after another along the longest path.
	Bytes int
	// Reduced is the number of bytes reduced one after another along the longest path.
	Reduced int
}

// Time returns the duration of the longest path, in the unit of alpha, beta and gamma.
func (c Cost) Time(alpha, beta, gamma float64) float64 {
	return float64(c.Rounds)*alpha + float64(c.Bytes)*beta + float64(c.Reduced)*gamma
}

// costOfRounds returns the Cost of a number of sequential rounds, each with a message of n bytes and a reduction of
// reduced bytes.
func costOfRounds(rounds, n, reduced int) Cost {
	return Cost{Rounds: rounds, Bytes: rounds * n, Reduced: rounds * reduced}
}

// addFold adds the cost of folding: each rank outside the group of f sends its vector of n bytes to its neighbor, which
// combines it, and receives the result.
func (c Cost) addFold(f fold, n int) Cost {
	if f.extra > 0 {
		c.Rounds, c.Bytes, c.Reduced = c.Rounds+2, c.Bytes+2*n, c.Reduced+n
	}
	return c
}

// log2 returns the binary logarithm of n, rounded up. It returns 0 for n < 2.
func log2(n int) int {
	if n < 2 {
		return 0
	}
	return bits.Len(uint(n - 1))
}

// allButOne returns (parts−1)/parts of n, rounded up.
func allButOne(n, parts int) int { return n - n/parts }

// blockSizes returns the total size and the maximum size of the blocks in a layout.
func (c *Call) blockSizes(l *Layout) (sum, greatest int) {
	if !c.Vector {
		return c.Bytes * c.Ranks, c.Bytes
	}
	for _, size := range l.Sizes {
		sum += size
		greatest = max(greatest, size)
	}
	return sum, greatest
}
