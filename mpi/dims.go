package mpi

import "math"

// Dims chooses the dimensions of a grid of nodes ranks (MPI_Dims_create, section 8.5.2): those that are 0 are set, as
// close to each other as possible and in non-increasing order, so that the product of all is nodes. As close as possible
// means: the difference of the largest and the smallest that are set is the least that there is, and
// of such choices the one with the least largest, then the least second largest, and so on.
//
// The error is ErrDims if a dimension is negative or nodes is not a multiple of those that are given, or not
// their product if all are, and ErrArg if nodes is not positive.
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
	chosen := balanced(rest, free)
	for i, d := range dims {
		if d == 0 {
			dims[i], chosen = chosen[0], chosen[1:]
		}
	}
	return nil
}

// balanced returns the factors of n that Dims chooses, k of them.
func balanced(n, k int) []int {
	f := factorizer{factors: make([]int, k), seen: make(map[factorization]bool)}
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
		// The smallest is at most the largest k factors of which are not more than n.
		if least < math.MaxInt && most-root(n, k) > least {
			break
		}
		for low := high; low >= 0; low-- {
			difference := most - f.divisors[low]
			if difference >= least {
				break
			}
			clear(f.seen)
			f.factors[0] = most
			if n%most == 0 && f.find(n/most, 1, high, low) {
				least, best = difference, append([]int(nil), f.factors...)
				break // lower ones differ by more
			}
		}
	}
	return best
}

// factorizer searches for factors.
type factorizer struct {
	divisors []int // ascending
	factors  []int
	// seen are searches that have failed.
	seen map[factorization]bool
}

type factorization struct{ n, at, high int }

// find sets the factors from number at on to divisors high to low, not increasing and the least first, whose product is n.
func (f *factorizer) find(n, at, high, low int) bool {
	left := len(f.factors) - at
	if left == 0 {
		return n == 1
	}
	state := factorization{n, at, high}
	if f.seen[state] {
		return false
	}
	for i := low; i <= high; i++ {
		d := f.divisors[i]
		if n%d != 0 || !reaches(d, left, n) {
			continue
		}
		f.factors[at] = d
		if f.find(n/d, at+1, i, low) {
			return true
		}
	}
	f.seen[state] = true
	return false
}

// reaches reports whether d to the power of k is at least n.
func reaches(d, k, n int) bool {
	if d == 1 {
		return n == 1
	}
	for ; k > 0 && n > 1; k-- {
		n = (n + d - 1) / d
	}
	return n <= 1
}

// root returns the largest number that to the power of k is at most n.
func root(n, k int) int {
	r := int(math.Pow(float64(n), 1/float64(k)))
	for r > 1 && !within(r, k, n) {
		r--
	}
	for within(r+1, k, n) {
		r++
	}
	return r
}

// within reports whether d to the power of k is at most n.
func within(d, k, n int) bool {
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
