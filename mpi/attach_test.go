package mpi_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// offered is a list of local ranks that programs may attach to.
type offered []mpe.Device

func (o offered) Hosts() []int {
	var ranks []int
	for r := range o {
		ranks = append(ranks, r)
	}
	return ranks
}

func (o offered) Device(rank int) (mpe.Device, error) {
	if rank < 0 || rank >= len(o) {
		return nil, fmt.Errorf("rank %d: %w", rank, mpe.ErrRank)
	}
	return o[rank], nil
}

// attached makes the devices of world, and replaces some of them, in steps of every, by clients of a server of these
// devices.
func attached(world mpitest.WorldFunc, every int) mpitest.WorldFunc {
	return func(t *testing.T, n int) []mpe.Device {
		t.Helper()
		ranks := offered(world(t, n))
		dir, err := os.MkdirTemp("", "mpi") // t.TempDir may be too long for a socket
		if err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(dir, "a")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- attach.NewServer(ranks, attach.Options{}).Serve(ctx, l) }()
		t.Cleanup(func() {
			stop()
			if err := <-served; err != nil {
				t.Errorf("the server ends with %v", err)
			}
			os.RemoveAll(dir)
		})
		devices := slices.Clone(ranks)
		for r := 0; r < n; r += every {
			c, err := client.Dial(t.Context(), socket, r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ended, stop := context.WithCancel(context.Background())
				stop()
				_ = c.Close(ended) // the test has closed it already
			})
			devices[r] = c
		}
		return devices
	}
}

func TestAttached(t *testing.T) {
	mpitest.Conformance(t, attached(engines(extendedPeer), 1))
}

// TestMixed runs the collectives with attached and other ranks in one communicator.
func TestMixed(t *testing.T) {
	mpitest.Collectives(t, attached(engines(extendedPeer), 2))
}
