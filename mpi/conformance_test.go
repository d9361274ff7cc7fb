package mpi_test

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

func TestConformance(t *testing.T) {
	for name, eager := range map[string]int{"rendezvous": -1, "eager": 16384, "all eager": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			mpitest.Conformance(t, mpitest.World(mpitest.Options{Eager: eager}))
		})
	}
}

func TestLimits(t *testing.T) {
	for name, limits := range map[string]mpe.PeerInfo{
		"cloudfpga": {Words: true, NoTags: true, NoComms: true, NoLength: true, NoEmpty: true},
		"v0.9":      {Words: true, SmallTags: true, NoComms: true, NoLength: true},
		"words":     {Words: true},
	} {
		limits.Profile = name
		t.Run(name, func(t *testing.T) {
			mpitest.Limits(t, mpitest.World(mpitest.Options{Eager: -1, Between: func(a, b int) mpe.PeerInfo {
				if a == 0 || b == 0 || name == "v0.9" {
					return limits
				}
				return mpe.PeerInfo{Profile: "extended"}
			}}))
		})
	}
}
