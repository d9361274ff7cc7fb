package integration_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/udp"
)

// offered lists the ranks that programs may attach to.
type offered []*mpe.Engine

func (o offered) Hosts() []int {
	var ranks []int
	for _, e := range o {
		ranks = append(ranks, e.Rank())
	}
	return ranks
}

func (o offered) Device(rank int) (mpe.Device, error) {
	i := slices.Index(o.Hosts(), rank)
	if i < 0 {
		return nil, mpe.ErrRank
	}
	return o[i], nil
}

// BenchmarkAmongAttached measures the round trip of 4 bytes between two ranks of a process, while idle programs are
// attached to its other ranks. The time should not depend on the number of programs.
func BenchmarkAmongAttached(b *testing.B) {
	for _, n := range []int{0, 1, 8, 32} {
		b.Run(fmt.Sprintf("idle=%d", n), func(b *testing.B) {
			var entries []rankmap.Entry
			for rank := range n + 2 {
				entries = append(entries,
					rankmap.Entry{Rank: rank,
						Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 88, byte(rank + 1)}), 27188),
						Kind: rankmap.Software})
			}
			m, err := rankmap.New(entries)
			if err != nil {
				b.Fatal(err)
			}
			var engines []*mpe.Engine
			for rank := range entries {
				conn, err := udp.Listen(udp.Config{Rank: rank, Map: m})
				if err != nil {
					b.Fatal(err)
				}
				cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, len(entries))}
				for peer := range entries {
					if peer != rank {
						cfg.Peers[peer] = mpe.Peer{Transport: conn, Extended: &extended.Config{Seed: uint64(rank) + 1}}
					}
				}
				e, err := mpe.New(cfg)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() {
					end, stop := context.WithTimeout(context.Background(), time.Second)
					defer stop()
					e.Close(end)
				})
				engines = append(engines, e)
			}
			attachIdle(b, engines[2:])
			pingPong(b, engines[0], engines[1], 1)
		})
	}
}

// attachIdle attaches a program to each rank and leaves it idle.
func attachIdle(b *testing.B, ranks offered) {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- attach.NewServer(ranks, attach.Options{}).Serve(ctx, l) }()
	for range ranks {
		c, err := client.Dial(ctx, socket, client.AnyRank)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close(context.Background()) })
	}
	b.Cleanup(func() {
		stop()
		<-ended
	})
}
