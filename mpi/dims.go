package mpi

import "math"

// Dims chooses the dimensions of a grid of nodes ranks (MPI_Dims_create, section 8.5.2). It sets the entries
// that are 0, in non-increasing order, so that the product of all entries is nodes. The entries set are as
// close to each other as possible: the difference between the largest and the smallest is minimal. If several
// choices have the same difference, Dims takes the one with the greatest smallest entry, then the greatest
// second smallest entry, and so on, like MPICH.
//
// The error is ErrDims if a dimension is negative, if nodes is not a multiple of the given dimensions, or if no
// dimension is 0 and their product is not nodes. It is ErrArg if nodes is not positive.
func Dims(nodes int, dims []int) error {
	const op = "Dims"
	if nodes <= 0 {
		return errorf(ErrArg, op, "a grid of %d ranks", nodes)
	}
	rest, free := nodes, 0
	for i, d := range dims {
		switch {
		case d < 0:
			return errorf(ErrDims, op, "dimension %d is %d: it is 0 or more", i, d)
		case d == 0:
			free++
		case rest%d != 0:
			return errorf(ErrDims, op, "%d ranks are not a multiple of the dimensions that are given", nodes)
		default:
			rest /= d
		}
	}
	if free == 0 {
		if rest != 1 {
			return errorf(ErrDims, op, "the product of the dimensions is %d, not %d", nodes/rest, nodes)
		}
		return nil
	}
	chosen := balancedFactors(rest, free)
	for i, d := range dims {
		if d == 0 {
			dims[i], chosen = chosen[0], chosen[1:]
		}
	}
	return nil
}

// balancedFactors divides n into k factors that are as close to each other as possible, for Dims.
func balancedFactors(n, k int) []int {
	if k == 1 {
		return []int{n}
	}
	f := factorizer{factors: make([]int, k), failed: make(map[factorization]bool)}
	for d := 1; d <= n/d; d++ {
		if n%d == 0 {
			f.divisors = append(f.divisors, d)
		}
	}
	for i := len(f.divisors) - 1; i >= 0; i-- {
		if d := n / f.divisors[i]; d > f.divisors[i] {
			f.divisors = append(f.divisors, d)
		}
	}
	least := math.MaxInt
	var best []int
	for high, most := range f.divisors {
		// The smallest factor is at most the k-th root of n, so a greater value of most cannot reduce the difference.
		if most-integerRoot(n, k) > least {
			break
		}
		for low := high; low >= 0; low-- {
			smallest := f.divisors[low]
			if most-smallest > least { // if the difference is equal, continue: greater values are preferred
				break
			}
			clear(f.failed)
			if rest := n / most; rest%smallest == 0 && f.find(rest/smallest, k-2, low, high) {
				f.factors[0], f.factors[k-1] = most, smallest
				least, best = most-smallest, append(best[:0], f.factors...)
				break // smaller values give a larger difference
			}
		}
	}
	return best
}

// factorizer searches for factors.
type factorizer struct {
	divisors []int // ascending
	factors  []int
	// failed caches the searches that have failed.
	failed map[factorization]bool
}

type factorization struct{ n, index, low int }

// find sets factors[1] to factors[at] to divisors whose product is n, in non-increasing order. It uses only those with
// index low to high in the list of divisors. It reports whether that is possible.
func (f *factorizer) find(n, at, low, high int) bool {
	if at == 0 {
		return n == 1
	}
	state := factorization{n, at, low}
	if f.failed[state] || !powerAtLeast(f.divisors[high], at, n) {
		return false
	}
	for i := high; i >= low; i-- {
		d := f.divisors[i]
		if n%d != 0 || !powerAtMost(d, at, n) {
			continue
		}
		f.factors[at] = d
		if f.find(n/d, at-1, i, high) {
			return true
		}
	}
	f.failed[state] = true
	return false
}

// powerAtLeast reports whether d to the power of k is at least n.
func powerAtLeast(d, k, n int) bool {
	if d == 1 {
		return n == 1
	}
	for ; k > 0 && n > 1; k-- {
		n = (n + d - 1) / d
	}
	return n <= 1
}

// integerRoot returns the largest integer whose k-th power is at most n.
func integerRoot(n, k int) int {
	r := int(math.Pow(float64(n), 1/float64(k)))
	for r > 1 && !powerAtMost(r, k, n) {
		r--
	}
	for powerAtMost(r+1, k, n) {
		r++
	}
	return r
}

// powerAtMost reports whether d to the power of k is at most n.
func powerAtMost(d, k, n int) bool {
	if d <= 1 {
		return true
	}
	for ; k > 0; k-- {
		if n /= d; n == 0 {
			return false
		}
	}
	return true
}
