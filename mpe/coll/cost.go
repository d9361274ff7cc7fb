package coll

import "math/bits"

// Cost is the cost of a call by an algorithm's cost function. Rounds, Bytes and Reduced are sums along the longest
// path, which takes Rounds·α + Bytes·β + Reduced·γ: α is the fixed time of a message, β the time of a byte on the
// wire, and γ the time of a byte of a reduction. Copies within a rank are not counted.
type Cost struct {
	// Rounds is the number of sequential messages.
	Rounds int
	// Bytes is the number of bytes sent sequentially.
	Bytes int
	// Reduced is the number of bytes reduced sequentially.
	Reduced int
}

// Time returns the duration of the longest path, in the unit of its arguments.
func (c Cost) Time(alpha, beta, gamma float64) float64 {
	return float64(c.Rounds)*alpha + float64(c.Bytes)*beta + float64(c.Reduced)*gamma
}

// times returns the Cost of a path of rounds messages of n bytes each, with a reduction of reduced bytes after each.
func times(rounds, n, reduced int) Cost {
	return Cost{Rounds: rounds, Bytes: rounds * n, Reduced: rounds * reduced}
}

// folded adds the cost of ranks beyond the power of two of f: they send their vector of n bytes, which is reduced,
// and receive the result.
func (c Cost) folded(f fold, n int) Cost {
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

// share returns (parts−1)/parts of n, rounded up.
func share(n, parts int) int { return n - n/parts }

// vector returns the sum and the maximum of the sizes of blocks.
func (c *Call) vector(l *Layout) (sum, greatest int) {
	if !c.Vector {
		return c.Bytes * c.Ranks, c.Bytes
	}
	for _, size := range l.Sizes {
		sum += size
		greatest = max(greatest, size)
	}
	return sum, greatest
}
