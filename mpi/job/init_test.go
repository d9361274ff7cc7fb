package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// device is a Device that can only be opened and closed.
type device struct {
	mpe.Device
	size, closed int
}

func (d *device) Rank() int                      { return 0 }
func (d *device) Size() int                      { return d.size }
func (d *device) Peer(int) (mpe.PeerInfo, error) { return mpe.PeerInfo{}, nil }
func (d *device) Resting() mpe.RestingSends      { return nil }
func (d *device) Close(context.Context) error    { d.closed++; return nil }

func TestInit(t *testing.T) {
	oldAttached, oldInProcess := openAttached, openInProcess
	t.Cleanup(func() { openAttached, openInProcess = oldAttached, oldInProcess })
	var opened string
	opener := func(name string) func(context.Context, string, int) (mpe.Device, error) {
		return func(_ context.Context, where string, rank int) (mpe.Device, error) {
			if where == "broken" {
				return nil, mpe.ErrClosed
			}
			opened = fmt.Sprintf("%s %s %d", name, where, rank)
			return &device{size: 1}, nil
		}
	}
	openAttached, openInProcess = opener("attached"), opener("in process")
	for _, c := range []struct {
		socket, config, rank string
		opens                string
		class                mpi.Class
		says                 string
	}{
		{"", "", "", "", mpi.ErrOther, "ZRLMPI_SOCKET"},
		{"/run/a.sock", "", "", "attached /run/a.sock -1", mpi.Success, ""},
		{"/run/a.sock", "", "3", "attached /run/a.sock 3", mpi.Success, ""},
		{"", "c.yaml", "0", "in process c.yaml 0", mpi.Success, ""},
		{"", "c.yaml", "", "", mpi.ErrOther, "ZRLMPI_RANK is not"},
		{"/run/a.sock", "c.yaml", "0", "", mpi.ErrOther, "unset one"},
		{"/run/a.sock", "", "-1", "", mpi.ErrRank, `ZRLMPI_RANK="-1"`},
		{"/run/a.sock", "", "one", "", mpi.ErrRank, `ZRLMPI_RANK="one"`},
		{"broken", "", "", "", mpi.ErrOther, "ZRLMPI_SOCKET=broken: the rank is shut down"},
		{"", "broken", "1", "", mpi.ErrOther, "ZRLMPI_CONFIG=broken: the rank is shut down"},
	} {
		opened = ""
		t.Setenv(EnvSocket, c.socket)
		t.Setenv(EnvConfig, c.config)
		t.Setenv(EnvRank, c.rank)
		world, err := Init(t.Context())
		if mpi.ClassOf(err) != c.class || opened != c.opens || (err == nil) != (world != nil) {
			t.Errorf("%+v: opened %q, %v", c, opened, err)
		}
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q does not say %q", err, c.says)
		}
	}
	t.Setenv(EnvSocket, "broken")
	t.Setenv(EnvConfig, "")
	t.Setenv(EnvRank, "")
	if _, err := Init(t.Context()); !errors.Is(err, mpe.ErrClosed) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// TestDevice checks that each way to open a device is chosen exactly if the environment describes it.
func TestDevice(t *testing.T) {
	oldAttached, oldInProcess, oldLaunched := openAttached, openInProcess, openLaunched
	t.Cleanup(func() { openAttached, openInProcess, openLaunched = oldAttached, oldInProcess, oldLaunched })
	var opened string
	openAttached = func(_ context.Context, socket string, rank int) (mpe.Device, error) {
		opened = fmt.Sprintf("attached %s %d", socket, rank)
		return &device{size: 1}, nil
	}
	openInProcess = func(_ context.Context, config string, rank int) (mpe.Device, error) {
		opened = fmt.Sprintf("in process %s %d", config, rank)
		return &device{size: 1}, nil
	}
	openLaunched = func(_ context.Context, config string) (mpe.Device, error) {
		opened = strings.TrimSpace("launched " + config)
		return &device{size: 1}, nil
	}
	for _, tt := range []struct{ socket, config, rank, fd, want string }{
		{"", "", "", "", ""},
		{"", "", "", "7", "launched"},
		{"", "", "10", "", ""},
		{"", "", "10", "7", "launched"}, // from an outer job
		{"", "c", "", "", ""},
		{"", "c", "", "7", "launched c"},
		{"", "c", "10", "", "in process c 10"},
		{"", "c", "10", "7", "in process c 10"},
		{"s", "", "", "", "attached s -1"},
		{"s", "", "", "7", "attached s -1"},
		{"s", "", "10", "", "attached s 10"},
		{"s", "", "10", "7", "attached s 10"},
		{"s", "c", "", "", ""},
		{"s", "c", "", "7", ""},
		{"s", "c", "10", "", ""},
		{"s", "c", "10", "7", ""},
		// Ranks.
		{"s", "", "0", "", "attached s 0"},
		{"s", "", "2147483647", "", "attached s 2147483647"},
		{"s", "", "2147483648", "", ""},
		{"s", "", "1a", "", ""},
		{"s", "", "0x1", "", ""},
	} {
		opened = ""
		t.Setenv(EnvSocket, tt.socket)
		t.Setenv(EnvConfig, tt.config)
		t.Setenv(EnvRank, tt.rank)
		t.Setenv(pmi.EnvFD, tt.fd)
		dev, err := Device(t.Context())
		if opened != tt.want || (err == nil) != (tt.want != "") || (dev != nil) != (err == nil) {
			t.Errorf("%+v: opened %q, %v", tt, opened, err)
		}
	}
}

// TestLaunched checks that Init reports a launcher that cannot be joined, with the cause.
func TestLaunched(t *testing.T) {
	old := openLaunched
	t.Cleanup(func() { openLaunched = old })
	openLaunched = func(context.Context, string) (mpe.Device, error) { return nil, mpe.ErrClosed }
	t.Setenv(EnvSocket, "")
	t.Setenv(EnvConfig, "")
	t.Setenv(EnvRank, "")
	t.Setenv(pmi.EnvFD, "7")
	if dev, err := Device(t.Context()); dev != nil || !errors.Is(err, mpe.ErrClosed) ||
		mpi.ClassOf(err) != mpi.ErrOther ||
		!strings.Contains(err.Error(), "joining the job of a launcher") {
		t.Errorf("%v, %v", dev, err)
	}
}

// TestInitCloses checks that a device is closed if New rejects it.
func TestInitCloses(t *testing.T) {
	old := openAttached
	t.Cleanup(func() { openAttached = old })
	d := &device{}
	openAttached = func(context.Context, string, int) (mpe.Device, error) { return d, nil }
	t.Setenv(EnvSocket, "x")
	t.Setenv(EnvConfig, "")
	t.Setenv(EnvRank, "")
	if _, err := Init(t.Context()); !errors.Is(err, mpi.ErrIntern) || d.closed != 1 {
		t.Errorf("Init: %v; the device was closed %d times", err, d.closed)
	}
}
