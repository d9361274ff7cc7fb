package xdp_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// BenchmarkRoundTrip measures messages between two engines on hosts joined by a veth pair, there and back, through the
// kernel's sockets and through the path.
func BenchmarkRoundTrip(b *testing.B) {
	for _, profile := range []string{"cloudfpga", "extended"} {
		for _, words := range []int{1, 346, 4096, 262160} {
			for _, byPath := range []bool{false, true} {
				way := "kernel"
				if byPath {
					way = "xdp"
				}
				b.Run(fmt.Sprintf("%s/%d/%s", profile, words, way), func(b *testing.B) {
					benchmarkRoundTrip(b, profile, words, byPath)
				})
			}
		}
	}
}

func benchmarkRoundTrip(b *testing.B, profile string, words int, byPath bool) {
	h := newHosts(b)
	h.resolve(b, false)
	m := newMap(b, false)
	var engines [2]*mpe.Engine
	for rank := range engines {
		cfg := udp.Config{Rank: rank, Map: m}
		if byPath {
			cfg.OpenPath = xdp.Open
		}
		peer := mpe.Peer{Handshake: handshake.Config{Peer: handshake.SoftwarePeer(), Shape: protocol.CPUShape(),
			MaxWords: 1 << 20, Timing: handshake.DefaultTiming(handshake.SoftwarePeer())}}
		if profile == "extended" {
			peer.Extended = &extended.Config{}
			cfg.Large = func(int) bool { return true }
		}
		c, err := h.listen(cfg)
		if err != nil {
			b.Fatal(err)
		}
		peer.Transport = c
		peers := make([]mpe.Peer, 2)
		peers[1-rank] = peer
		if engines[rank], err = mpe.New(mpe.Config{Rank: rank, Peers: peers}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = engines[rank].Close(ctx)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	echoed := make(chan error, 1)
	go func() {
		buffer := make([]byte, 4*words)
		for {
			if _, err := engines[1].Recv(ctx, 0, buffer, mpe.Options{}); err != nil {
				echoed <- err
				return
			}
			if _, err := engines[1].Send(ctx, 0, buffer, mpe.Options{}); err != nil {
				echoed <- err
				return
			}
		}
	}()
	buffer := make([]byte, 4*words)
	b.SetBytes(int64(8 * words))
	for b.Loop() {
		if _, err := engines[0].Send(ctx, 1, buffer, mpe.Options{}); err != nil {
			b.Fatal(err)
		}
		if _, err := engines[0].Recv(ctx, 1, buffer, mpe.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-echoed
}

// BenchmarkCall measures the time to send and receive a handshake packet on one thread. Before each packet there is a
// poll that finds nothing, as in a waiting rank; "empty" measures such polls alone.
func BenchmarkCall(b *testing.B) {
	for _, way := range []string{"kernel", "xdp"} {
		h := newHosts(b)
		h.resolve(b, false)
		m := newMap(b, false)
		var conns [2]*udp.Conn
		for rank := range conns {
			cfg := udp.Config{Rank: rank, Map: m}
			if way == "xdp" {
				cfg.OpenPath = xdp.Open
			}
			var err error
			if conns[rank], err = h.listen(cfg); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { conns[rank].Close() })
		}
		header := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Type: protocol.SendRequest})
		batch := make([]mpe.RxPacket, 64)
		poll := func(b *testing.B, want int) {
			if n, err := conns[1].Poll(batch, nil); n != want || err != nil {
				b.Fatal(n, err)
			}
		}
		b.Run(way, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				poll(b, 0)
				if err := conns[0].SendHeader(1, header); err != nil {
					b.Fatal(err)
				}
				poll(b, 1)
			}
		})
		b.Run("empty/"+way, func(b *testing.B) {
			for b.Loop() {
				poll(b, 0)
			}
		})
	}
}
