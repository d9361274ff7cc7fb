package mpi_test

import (
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// factorizations calls f with every product of k factors in descending order that equals n. No factor exceeds most.
func factorizations(n, k, most int, before []int, f func([]int)) {
	if k == 0 {
		if n == 1 {
			f(before)
		}
		return
	}
	for d := 1; d <= min(n, most); d++ {
		if n%d == 0 {
			factorizations(n/d, k-1, d, append(before, d), f)
		}
	}
}

// TestDims compares the result with all factorizations.
func TestDims(t *testing.T) {
	for n := 1; n <= 400; n++ {
		for k := 1; k <= 5; k++ {
			var best []int
			factorizations(n, k, n, nil, func(x []int) {
				ascending := slices.Clone(x)
				slices.Reverse(ascending)
				difference, least := x[0]-x[k-1], 0
				if best != nil {
					least = best[k-1] - best[0]
				}
				if best == nil || difference < least || difference == least && slices.Compare(ascending, best) > 0 {
					best = ascending
				}
			})
			slices.Reverse(best)
			got := make([]int, k)
			if err := mpi.Dims(n, got); err != nil || !slices.Equal(got, best) {
				t.Fatalf("%d ranks: %v, %v, not %v", n, got, err, best)
			}
		}
	}
}

func TestDimsGiven(t *testing.T) {
	for _, x := range []struct {
		n          int
		dims, want []int
		class      mpi.Class
	}{
		// The examples in the standard.
		{6, []int{0, 0}, []int{3, 2}, mpi.Success},
		{7, []int{0, 0}, []int{7, 1}, mpi.Success},
		{6, []int{0, 3, 0}, []int{2, 3, 1}, mpi.Success},
		{7, []int{0, 3, 0}, nil, mpi.ErrDims},

		{5040, []int{0, 0, 0}, []int{21, 16, 15}, mpi.Success}, // 20 × 18 × 14 is equally close
		{98784, []int{0, 0, 0, 0, 0}, []int{14, 14, 9, 8, 7}, mpi.Success},
		{24, []int{0, 2, 0, 0}, []int{3, 2, 2, 2}, mpi.Success},
		{1, nil, nil, mpi.Success},
		{2, nil, nil, mpi.ErrDims},
		{6, []int{3, 2}, []int{3, 2}, mpi.Success},
		{12, []int{3, 2}, nil, mpi.ErrDims},
		{6, []int{-1, 0}, nil, mpi.ErrDims},
		{0, []int{0}, nil, mpi.ErrArg},
		{-4, []int{0}, nil, mpi.ErrArg},
		{2147483647, []int{0, 0, 0}, []int{2147483647, 1, 1}, mpi.Success},
		{1 << 30, []int{0, 0, 0}, []int{1024, 1024, 1024}, mpi.Success},
	} {
		dims := slices.Clone(x.dims)
		if err := mpi.Dims(x.n, dims); mpi.ClassOf(err) != x.class || err == nil && !slices.Equal(dims, x.want) {
			t.Errorf("Dims(%d, %v) gives %v, %v", x.n, x.dims, dims, err)
		}
	}
}

// TestDimsMany uses numbers with many divisors, and many dimensions.
func TestDimsMany(t *testing.T) {
	for k := 1; k <= 34; k++ {
		for _, n := range []int{735134400, 2095133040, 1 << 31, 3 * 5 * 7 * 11 * 13 * 17 * 19 * 23, 1046527 * 2039} {
			dims := make([]int, k)
			if err := mpi.Dims(n, dims); err != nil {
				t.Fatal(err)
			}
			product := 1
			for _, d := range dims {
				product *= d
			}
			if product != n {
				t.Fatalf("%d: %v", n, dims)
			}
		}
	}
}
