package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// worldsWithFPGAs opens all ranks on real sockets: hosts, which use the extended profile among each other, and
// stand-ins with an FPGA's quirks. A test acts as the FPGA's program on the communicator of a stand-in.
//
// No datagram is lost, but on a busy machine a rank may be delayed for longer than by any network or FPGA. So no rank
// retransmits early or treats a message as aborted.
func worldsWithFPGAs(t *testing.T, l layout) []*mpi.Comm {
	t.Helper()
	cfg := fpgaConfig(t, l, ", timing: default", ", deadlines: {ack: 0s, data: 0s}")
	return openWorlds(t, cfg, func(t handshake.Timing) handshake.Timing {
		t = patient(t)
		t.Clear.First, t.Ack.First, t.Data.First = 30*time.Second, 30*time.Second, 30*time.Second
		return t
	})
}

// openWorlds opens all ranks of a configuration, with timeouts adjusted by timing.
func openWorlds(t *testing.T, cfg *config.Config, timing func(handshake.Timing) handshake.Timing) []*mpi.Comm {
	t.Helper()
	worlds := make([]*mpi.Comm, len(cfg.Ranks))
	for i := range worlds {
		worlds[i] = openRank(t, cfg, i, timing)
	}
	return worlds
}

func openRank(t *testing.T, cfg *config.Config, rank int, timing func(handshake.Timing) handshake.Timing) *mpi.Comm {
	t.Helper()
	return worldOf(t, openEngine(t, cfg, rank, timing))
}

func openEngine(t *testing.T, cfg *config.Config, rank int,
	timing func(handshake.Timing) handshake.Timing) *mpe.Engine {
	t.Helper()
	r, err := node.Plan(cfg, cfg.Rank(rank))
	if err != nil {
		t.Fatal(err)
	}
	links := r.Links()
	for i := range links {
		links[i].Handshake.Timing = timing(links[i].Handshake.Timing)
	}
	if err := errors.Join(r.Bind(mapOf(t, cfg)), r.Start(nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		wedgetest.Check(t, r.Engine)
		_ = r.Close(ended())
	})
	return r.Engine
}

// deployed keeps the configured timeouts.
func deployed(t handshake.Timing) handshake.Timing { return t }

// fpgaConfig returns a configuration whose ranks all run in this process. The settings for stand-ins and for all links
// are empty or begin with a comma.
func fpgaConfig(t *testing.T, l layout, standin, links string) *config.Config {
	t.Helper()
	p := newPlace(t)
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: \"\"}\n%s\ndefaults: {profile: extended%s}\nranks:\n", l.collectives(), links)
	for i := range l.ranks {
		what := "run: standin, kernel: ring, link: {profile: cloudfpga}" + standin // the kernel is not started
		if slices.Contains(l.hosts, i) {
			what = "run: host"
		}
		fmt.Fprintf(&b, "  - {rank: %d, address: %s%d, %s}\n", i, p, i+1, what)
	}
	cfg, err := config.Parse(strings.NewReader(b.String()), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func mapOf(t *testing.T, cfg *config.Config) *rankmap.Map {
	t.Helper()
	m, err := node.RankMap(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func worldOf(t *testing.T, d mpe.Device) *mpi.Comm {
	t.Helper()
	world, err := mpi.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return world
}
