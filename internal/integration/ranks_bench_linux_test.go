package integration_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// BenchmarkAmongIdlePeers measures the round trip of 8 bytes to one rank of the extended profile, while the engine has
// other, idle peers with which it exchanged messages before. The time should not depend on their number.
func BenchmarkAmongIdlePeers(b *testing.B) {
	for _, n := range []struct{ fpgas, others int }{{0, 1}, {1, 1}, {0, 65}, {64, 1001}} {
		b.Run(fmt.Sprintf("idle=%d", n.fpgas+n.others-1), func(b *testing.B) {
			c := newCrowd(b, 85, n.fpgas, n.others)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			defer c.close(ctx, b)
			x := newRoundTrips(c)
			if err := x.round(ctx, 0, []int{8}); err != nil {
				b.Fatal(err)
			}
			to := n.fpgas + n.others
			data, buf := make([]byte, 8), make([]byte, 8)
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.engine.Irecv(to, buf, mpe.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.engine.Send(ctx, to, data, mpe.Options{}); err != nil {
					b.Fatal(err)
				}
				if _, err := r.Wait(ctx); err != nil {
					b.Fatal(err)
				}
				r.Free()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2e3, "half-rtt-us")
		})
	}
}

// BenchmarkAmongBusyPeers measures concurrent round trips of 8 bytes to all peers.
func BenchmarkAmongBusyPeers(b *testing.B) {
	for _, n := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("peers=%d", n), func(b *testing.B) {
			c := newCrowd(b, 86, 0, n)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			defer c.close(ctx, b)
			x := newRoundTrips(c)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := x.round(ctx, i, []int{8}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n)/1e3, "us/message")
		})
	}
}
