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

// worldsWithFPGAs opens all ranks on real sockets: hosts, which talk to each other by
// the extended profile, and stand-ins with an FPGA's quirks. What a test does on a
// stand-in's communicator is what the FPGA's program does.
//
// Nothing is lost, and on a busy machine a rank may be held up for longer than a network
// or an FPGA ever is: so no rank retransmits soon, or takes a message for aborted.
func worldsWithFPGAs(t *testing.T, l layout) []*mpi.Comm {
	t.Helper()
	cfg := fpgaConfig(t, l, ", timing: default", ", deadlines: {ack: 0s, data: 0s}")
	return openWorlds(t, cfg, func(t handshake.Timing) handshake.Timing {
		t = patient(t)
		t.Clear.First, t.Ack.First, t.Data.First = 30*time.Second, 30*time.Second, 30*time.Second
		return t
	})
}

// openWorlds opens all ranks of a configuration, with the time-outs that timing makes of
// the configured ones.
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

func openEngine(t *testing.T, cfg *config.Config, rank int, timing func(handshake.Timing) handshake.Timing) *mpe.Engine {
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

// deployed leaves time-outs as they are.
func deployed(t handshake.Timing) handshake.Timing { return t }

// fpgaConfig describes them. All are run by this process. What is said of stand-ins
// and of all links begins with a comma, or is empty.
func fpgaConfig(t *testing.T, l layout, standin, links string) *config.Config {
	t.Helper()
	p := newPlace(t)
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: \"\"}\n%s\ndefaults: {profile: extended%s}\nranks:\n", l.collectives(), links)
	for i := range l.ranks {
		what := "run: standin, kernel: ring, link: {profile: cloudfpga}" + standin // the kernel does not run
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
	m, err := node.Map(cfg)
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
