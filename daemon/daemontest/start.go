// Package daemontest runs daemons inside test processes. Only tests may import it.
package daemontest

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
)

// TestDaemon is a daemon that runs until the end of the test.
type TestDaemon struct {
	*daemon.Daemon
	// Socket is the path of the control socket, and Client is a client for it.
	Socket string
	Client *control.Client
	// ReadyLine is the daemon's ready line.
	ReadyLine string
}

// Start runs a daemon with its own control socket. ranks are the rank entries of the configuration without their
// numbers; more is the rest of the configuration. HTTP is disabled unless more enables it. If opts.Log is nil, the test
// fails when a stand-in receives packets that would wedge an FPGA.
func Start(t testing.TB, opts daemon.Options, more string, ranks ...string) *TestDaemon {
	t.Helper()
	testDaemon := &TestDaemon{Socket: filepath.Join(t.TempDir(), "c.sock")}
	if !strings.Contains(more, "http:") {
		more += "\nhttp: {listen: \"\"}"
	}
	text := fmt.Sprintf("control: {socket: %q}\n%s\nranks:\n", testDaemon.Socket, more)
	for i, rank := range ranks {
		text += fmt.Sprintf("  - {rank: %d, %s}\n", i, rank)
	}
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pr, pw := io.Pipe()
	opts.ReadyWriter, opts.ConfigSource = pw, "test.yaml"
	if opts.Log == nil {
		opts.Log = wedgetest.Log(t, nil)
	}
	if testDaemon.Daemon, err = daemon.New(cfg, opts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := testDaemon.Run(ctx)
		pw.CloseWithError(fmt.Errorf("the daemon ended: %w", err))
		ended <- err
	}()
	line := make([]byte, 64<<10)
	n, err := pr.Read(line)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	testDaemon.ReadyLine = string(line[:n])
	testDaemon.Client = control.NewClient(testDaemon.Socket)
	t.Cleanup(func() {
		testDaemon.Client.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return testDaemon
}
