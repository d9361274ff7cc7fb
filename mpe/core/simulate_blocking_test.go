package core_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// TestSimulationOfMPI checks that the tests of package mpi pass on simulated clusters, whatever the network
// does and in whatever order ranks run.
func TestSimulationOfMPI(t *testing.T) { eachSeed(t, 1, softwareKinds, simulateMPI) }

// Kinds of clusters: without FPGAs, with FPGAs, with FPGAs for kernels, and with the extended profile only.
func softwareKinds(k *core.SimulatedKind) bool { return !k.FPGA }
func fpgaKinds(k *core.SimulatedKind) bool     { return k.FPGA }
func kernelKinds(k *core.SimulatedKind) bool   { return k.FPGA && !k.Tree }
func extendedKinds(k *core.SimulatedKind) bool { return strings.HasPrefix(k.Name, "extended") }

// eachSeed simulates the programs of all seeds, or of one in oneIn seeds if programs take that many times as
// long, on each wanted kind of cluster.
func eachSeed(t *testing.T, oneIn uint64, wanted func(k *core.SimulatedKind) bool,
	simulate func(t *testing.T, k *core.SimulatedKind, seed uint64) *core.Simulated) {
	name := t.Name()
	first, n := core.Seeds()
	n = max(n/oneIn, 1)
	for i := range core.SimulatedKinds {
		k := &core.SimulatedKinds[i]
		if !wanted(k) {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			messages := 0
			for seed := first; seed < first+n; seed++ {
				s := simulate(t, k, seed)
				if t.Failed() {
					s.Log(t)
					t.Fatalf("again: go test ./mpe/core -run '%s$/^%s$' -seed %d -seeds 1", name, k.Name, seed)
				}
				messages += s.Messages
			}
			t.Logf("%d programs, %d messages and calls", n, messages)
		})
	}
}

// simulateMPI runs the test of a seed.
func simulateMPI(t *testing.T, k *core.SimulatedKind, seed uint64) (s *core.Simulated) {
	wire, err := devices(core.NewSimulated(t, k, seed, 2))[0].Peer(1)
	if err != nil {
		t.Fatal(err)
	}
	name := mpitest.RunOne(t, func(t *testing.T, ranks int) []mpe.Device {
		s = core.NewSimulated(t, k, seed, ranks)
		return devices(s)
	}, seed, wire)
	if t.Failed() {
		t.Logf("test %q", name)
	}
	return s
}

// TestSimulationOfMPIAgain checks that a seed determines everything that happens.
func TestSimulationOfMPIAgain(t *testing.T) {
	first, n := core.Seeds()
	n = max(n/25, 1)
	for i := range core.SimulatedKinds {
		if k := &core.SimulatedKinds[i]; softwareKinds(k) {
			for seed := first; seed < first+n; seed++ {
				for _, simulate := range []func(*testing.T, *core.SimulatedKind, uint64) *core.Simulated{simulateMPI,
					simulateAttached} {
					once := simulate(t, k, seed).Transcript()
					if again := simulate(t, k, seed).Transcript(); !bytes.Equal(once, again) {
						t.Errorf("%s, seed %d: something else happens", k.Name, seed)
					}
				}
			}
		}
	}
}

// TestNextProgramSplits checks that a program that ends during a Split leaves nothing behind for the next
// program's Split.
func TestNextProgramSplits(t *testing.T) {
	s := core.NewSimulated(t, &core.SimulatedKinds[0], 1, 2)
	devices := devices(s)
	worlds := func() (all [2]*mpi.Comm) {
		for rank, d := range devices {
			var err error
			if all[rank], err = mpi.New(d); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	first, d := worlds(), devices[1].(simulatedRank)
	if err := s.Run(func() {
		ctx, stop := d.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := first[1].Split(ctx, 1, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Split of one rank alone: %v", err)
		}
		start, stop := d.WithTimeout(t.Context(), time.Second) // of the next program
		defer stop()
		_ = d.Await(start, nil)
	}); err != nil {
		t.Fatal(err)
	}
	var programs []func()
	for _, world := range worlds() {
		programs = append(programs, func() {
			c, err := world.Split(t.Context(), 0, 0)
			if err != nil || c.Size() != 2 {
				t.Errorf("rank %d: %v, %v", world.Rank(), c, err)
			}
		})
	}
	if err := s.Run(programs...); err != nil {
		t.Fatal(err)
	}
}
