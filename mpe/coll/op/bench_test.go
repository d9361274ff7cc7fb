package op

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

// triadLoop is the triad of the STREAM benchmark: result = left + 3·right.
var triadLoop = elementwise(func(result, left, right []float64) {
	for i, x := range left[:len(result)] {
		result[i] = x + 3*right[i]
	}
})

// benchmarkPiece bounds the bytes of a measured call, so that few measurements are interrupted by other processes.
const benchmarkPiece = 1 << 20

// BenchmarkOperations measures every operation in place, as collective calls use it, with vectors that fit in the L1
// cache, in the L2 cache, and in neither. It reports medians: GB/s is the bytes of both operands and of the result by
// time, and x-triad the ratio to the same figure of STREAM's triad, which is measured alternately. Of vectors in
// memory, each call takes the next piece.
func BenchmarkOperations(b *testing.B) {
	const longest = 128 << 20
	var vectors [3][]byte
	for i := range vectors {
		vectors[i] = bytes.Repeat([]byte{1}, longest) // zeros would share a page
	}
	for _, n := range []int{8 << 10, 256 << 10, longest} {
		for o := Sum; o <= BXor; o++ {
			for t := Int8; t <= Float64; t++ {
				if f, err := Lookup(o, t); err == nil {
					b.Run(fmt.Sprintf("%v/%v/%dKiB", o, t, n>>10), func(b *testing.B) { benchmark(b, f, vectors, n) })
				}
			}
		}
	}
}

func benchmark(b *testing.B, f Func, vectors [3][]byte, n int) {
	x, y, z := vectors[0][:n], vectors[1][:n], vectors[2][:n]
	piece := min(n, benchmarkPiece)
	triad := streamTriad()
	var times, triadTimes []time.Duration
	for at := 0; b.Loop(); at = (at + piece) % n {
		far := (at + n/2/piece*piece) % n // not in a cache because of f
		start := time.Now()
		for range benchmarkPiece / piece {
			f(x[at:at+piece], y[at:at+piece], x[at:at+piece])
		}
		middle := time.Now()
		for range benchmarkPiece / piece {
			triad(z[far:far+piece], x[far:far+piece], y[far:far+piece])
		}
		times, triadTimes = append(times, middle.Sub(start)), append(triadTimes, time.Since(middle))
	}
	rate := func(times []time.Duration) float64 {
		slices.Sort(times)
		return 3 * benchmarkPiece / float64(times[len(times)/2])
	}
	b.ReportMetric(rate(times), "GB/s")
	b.ReportMetric(rate(times)/rate(triadTimes), "x-triad")
}
