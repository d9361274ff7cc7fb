package integration_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
	"github.com/zrlmpi/zrlmpid/node"
)

// place is the network of a test's ranks, as the first three bytes of their addresses.
type place string

func newPlace(t testing.TB) place { return place(loopback.Network(t)) }

// config returns a cluster of n hosts.
func (p place) config(t *testing.T, n int, extra string) *config.Config {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nranks:\n", extra)
	for i := range n {
		fmt.Fprintf(&b, "  - {rank: %d, address: %s%d, run: host}\n", i, p, i+1)
	}
	cfg, err := config.Parse(strings.NewReader(b.String()), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// ended returns a context that is already done.
func ended() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	return ctx
}

// inProcess opens all ranks in this process, over real sockets.
func inProcess(link string) mpitest.WorldFunc {
	return func(t *testing.T, n int) []mpe.Device {
		t.Helper()
		cfg := newPlace(t).config(t, n, "control: {socket: \"\"}\ndefaults: {"+link+"}")
		devices := make([]mpe.Device, n)
		for rank := range n {
			d, err := node.Open(cfg, rank, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close(ended()) })
			devices[rank] = d
		}
		return devices
	}
}

// startDaemon runs a daemon until the test ends. It returns once programs can attach.
func startDaemon(t *testing.T, cfg *config.Config) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready := make(chan struct{}, 1)
	cfg.HTTP.Listen = ""
	d, err := daemon.New(cfg, daemon.Options{ReadyWriter: notify(ready), Log: wedgetest.Log(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-stopped:
		stopped <- nil
		t.Fatal(err)
	}
}

// notify is a writer that signals each write on a channel.
type notify chan<- struct{}

func (n notify) Write(b []byte) (int, error) {
	n <- struct{}{}
	return len(b), nil
}

// attached opens every rank of a daemon over its Unix socket.
func attached(t *testing.T, n int) []mpe.Device {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "c.sock")
	cfg := newPlace(t).config(t, n, fmt.Sprintf("control: {socket: %q}\ndefaults: {profile: extended}", socket))
	startDaemon(t, cfg)
	devices := make([]mpe.Device, n)
	for rank := range n {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err := attach.Dial(ctx, cfg.AttachSocket(), rank)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(ended()) })
		devices[rank] = c
	}
	return devices
}

// TestMPI runs the conformance tests of package mpi on complete ranks: over UDP, TCP and shared memory, both in this
// process and attached to a daemon.
func TestMPI(t *testing.T) {
	for name, world := range map[string]mpitest.WorldFunc{
		"udp":      inProcess("profile: extended, transport: udp"),
		"shm":      inProcess("profile: extended"),
		"tcp":      inProcess("profile: extended, transport: tcp"),
		"tls":      overTLS,
		"attached": attached,
	} {
		t.Run(name, func(t *testing.T) { mpitest.Conformance(t, world) })
	}
}
