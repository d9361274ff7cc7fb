package coll

import "math/bits"

// Cost is what a call costs by an algorithm's formula. Rounds, Bytes and Reduced
// are those of the longest path: the time is Rounds·α + Bytes·β + Reduced·γ, where α
// is the time that a message takes whatever its length, β that of a byte on the
// wire, and γ that of a byte of a reduction. Copies within a rank are not counted.
type Cost struct {
	// Rounds are messages one after another.
	Rounds int
	// Bytes are bytes sent one after another.
	Bytes int
	// Reduced are bytes reduced one after another.
	Reduced int
}

// Time is the time of the longest path, in the unit of its arguments.
func (c Cost) Time(alpha, beta, gamma float64) float64 {
	return float64(c.Rounds)*alpha + float64(c.Bytes)*beta + float64(c.Reduced)*gamma
}

// times is Cost of a path of rounds messages of n bytes each, reduced bytes reduced
// after each.
func times(rounds, n, reduced int) Cost {
	return Cost{Rounds: rounds, Bytes: rounds * n, Reduced: rounds * reduced}
}

// folded adds what the ranks that are too many for a group of f do, with n bytes: they
// send their part, which is reduced, and get the result.
func (c Cost) folded(f fold, n int) Cost {
	if f.extra > 0 {
		c.Rounds, c.Bytes, c.Reduced = c.Rounds+2, c.Bytes+2*n, c.Reduced+n
	}
	return c
}

// log2 is the logarithm of n, rounded up; of 0 and 1, 0.
func log2(n int) int {
	if n < 2 {
		return 0
	}
	return bits.Len(uint(n - 1))
}

// share is (parts−1)/parts of n, rounded up.
func share(n, parts int) int { return n - n/parts }

// vector gives the sum and the greatest of the sizes of blocks.
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
