package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestAlgorithmsOverSockets makes every collective call with every algorithm, over real sockets and shared memory.
func TestAlgorithmsOverSockets(t *testing.T) {
	for link, config := range map[string]string{
		"udp": "profile: extended, transport: udp", "tcp": "profile: extended, transport: tcp",
		"shm": "profile: extended",
	} {
		for _, ranks := range []int{2, 3, 5, 8, 16} {
			if ranks > 8 && race.Enabled {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", link, ranks), func(t *testing.T) {
				devices := inProcess(config)(t, ranks)
				shared := 0
				if link == "shm" {
					shared = shm.SharedHalf
				}
				cases := colltest.AllCases(ranks, []int{0, ranks - 1}, []int{1, 777, 40000 / ranks}, shared)
				if err := colltest.Run(devices, cases, time.Minute); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestAlgorithmsThroughLoss makes every collective call with every algorithm, over a network that loses, duplicates and
// delays 5 % of packets each.
func TestAlgorithmsThroughLoss(t *testing.T) {
	const ranks = 5
	cfg := newPlace(t).config(t, ranks, "control: {socket: \"\"}\ndefaults: {profile: extended}")
	net, maps := relayed(t, cfg, "udp", "loss 5% duplicate 5% reorder 5%")
	var devices []mpe.Device
	for rank, m := range maps {
		tr, err := udp.Listen(udp.Config{Rank: rank, Map: m})
		if err != nil {
			t.Fatal(err)
		}
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, ranks)}
		for peer := range cfg.Peers {
			cfg.Peers[peer] = mpe.Peer{Transport: tr,
				Extended: &extended.Config{Seed: uint64(rank*ranks + peer + 1), EagerLimit: 2000}}
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close(ended()) })
		devices = append(devices, e)
	}
	cases := colltest.AllCases(ranks, []int{0, 3}, []int{1, 5000}, 0)
	if err := colltest.Run(devices, cases, time.Minute); err != nil {
		t.Fatal(err)
	}
	if c := net.Report().Total; c.Lost == 0 || c.Duplicated == 0 || c.Reordered == 0 {
		t.Errorf("the network was not impaired: %+v", c)
	}
}
