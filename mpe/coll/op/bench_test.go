package op

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// triad is the kernel of the STREAM benchmark of that name, in Go: the bandwidth that one core can reach.
func triad(result, left, right []float64) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]float64)(result), (*[8]float64)(left), (*[8]float64)(right)
		r[0], r[1], r[2], r[3] = a[0]+3*b[0], a[1]+3*b[1], a[2]+3*b[2], a[3]+3*b[3]
		r[4], r[5], r[6], r[7] = a[4]+3*b[4], a[5]+3*b[5], a[6]+3*b[6], a[7]+3*b[7]
		result, left, right = result[8:], left[8:], right[8:]
	}
}

// BenchmarkOperations measures every operation in place, as collective calls use it, with vectors that fit in the L1
// cache, in the L2 cache, and in neither. It reports medians: GB/s is the bytes of both operands and of the result by
// time, and x-triad the ratio to the same figure of STREAM's triad, which runs alternately.
func BenchmarkOperations(b *testing.B) {
	const longest = 128 << 20
	x, y, z := make([]byte, longest), make([]byte, longest), make([]byte, longest)
	stream := elementwise(triad)
	for _, n := range []int{8 << 10, 256 << 10, longest} {
		for o := Sum; o <= BXor; o++ {
			for t := Int8; t <= Float64; t++ {
				f, err := Lookup(o, t)
				if err != nil {
					continue
				}
				b.Run(fmt.Sprintf("%v/%v/%dKiB", o, t, n>>10), func(b *testing.B) {
					repeat := max(1, (1<<20)/n)
					var own, reference []time.Duration
					for b.Loop() {
						start := time.Now()
						for range repeat {
							f(x[:n], y[:n], x[:n])
						}
						middle := time.Now()
						for range repeat {
							stream(z[:n], x[:n], y[:n])
						}
						own, reference = append(own, middle.Sub(start)), append(reference, time.Since(middle))
					}
					rate := func(list []time.Duration) float64 {
						slices.Sort(list)
						return float64(3*n*repeat) / float64(list[len(list)/2])
					}
					b.ReportMetric(rate(own), "GB/s")
					b.ReportMetric(rate(own)/rate(reference), "x-triad")
				})
			}
		}
	}
}
