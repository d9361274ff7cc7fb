package mpi_test

import (
	"context"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// engines returns engines on a network in memory. configure sets the parameters of the link between two ranks.
func engines(configure func(a, b int, p *mpe.Peer)) mpitest.WorldFunc {
	return func(t *testing.T, n int) []mpe.Device {
		t.Helper()
		net := memnet.New(n)
		devices := make([]mpe.Device, n)
		for rank := range n {
			cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, n)}
			tr := net.Transport(rank)
			for other := range n {
				p := &cfg.Peers[other]
				p.Transport = tr
				p.Handshake = handshake.Config{Shape: protocol.CPUShape(),
					Timing: handshake.DefaultTiming(handshake.PeerRules{}), MaxWords: 1 << 20}
				configure(rank, other, p)
			}
			e, err := mpe.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ended, stop := context.WithCancel(context.Background())
				stop()
				_ = e.Close(ended) // the test has closed it already
			})
			devices[rank] = e
		}
		return devices
	}
}

func extendedPeer(a, b int, p *mpe.Peer) {
	p.Extended = &extended.Config{Seed: uint64(a*100 + b + 1)}
}

func TestEngines(t *testing.T) {
	mpitest.Conformance(t, engines(extendedPeer))
}

func TestEnginesLimits(t *testing.T) {
	for name, profile := range map[string]protocol.Profile{"cloudfpga": protocol.CloudFPGA, "v0.9": protocol.V09} {
		t.Run(name, func(t *testing.T) {
			mpitest.Limits(t, engines(func(a, b int, p *mpe.Peer) {
				if a != 0 && b != 0 {
					extendedPeer(a, b, p)
				}
				p.Handshake.Profile = profile
			}))
		})
	}
}
