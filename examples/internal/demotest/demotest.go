// Package demotest runs examples in tests: alone, and as the host rank of a daemon
// with stand-ins. It is for tests only.
package demotest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/internal/testkit/wedgetest"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Output is what a run of an example ended with.
type Output struct {
	Code           int
	Stdout, Stderr string
}

// Run runs an example to its end.
func Run(t testing.TB, info demo.Info, e demo.Example, args ...string) Output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := demo.Run(t.Context(), info, e, args, &stdout, &stderr)
	return Output{code, stdout.String(), stderr.String()}
}

// Right checks that a run ended well, and that its table says all of this.
func (o Output) Right(t testing.TB, says ...string) {
	t.Helper()
	if o.Code != 0 || o.Stderr != "" {
		t.Errorf("exit code %d, %s", o.Code, o.Stderr)
	}
	for _, text := range says {
		if !strings.Contains(o.Stdout, text) {
			t.Errorf("%q is missing:\n%s", text, o.Stdout)
		}
	}
}

// Refused checks that a run ended with a usage error that says this.
func (o Output) Refused(t testing.TB, says string) {
	t.Helper()
	if o.Code != 2 || o.Stdout != "" || !strings.Contains(o.Stderr, says) {
		t.Errorf("exit code %d, want 2 and %q; %s%s", o.Code, says, o.Stdout, o.Stderr)
	}
}

// JSON decodes what a run with -json has printed.
func (o Output) JSON(t testing.TB, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.Stdout), to); err != nil {
		t.Fatalf("%v: %s%s", err, o.Stdout, o.Stderr)
	}
}

// Cluster is a running daemon.
type Cluster struct {
	// Config is its file, and Socket its attach socket.
	Config, Socket string
}

// Start starts a daemon on addresses of its own. Each of ranks is what the
// configuration says of a rank beside its number and address.
func Start(t testing.TB, ranks ...string) Cluster {
	t.Helper()
	dir := t.TempDir()
	c := Cluster{filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "attach.sock")}
	text := fmt.Sprintf("control: {socket: \"\"}\nattach: {socket: %q}\nhttp: {listen: \"\"}\nranks:\n", c.Socket)
	net, port := rand.IntN(250), 20000+rand.IntN(10000)
	for i, rank := range ranks {
		text += fmt.Sprintf("  - {rank: %d, address: \"127.77.%d.%d:%d\", %s}\n", i, net, i+1, port, rank)
	}
	if err := os.WriteFile(c.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(signal, 1)
	d, err := daemon.New(cfg, daemon.Options{Ready: ready, Log: wedgetest.Log(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("the daemon does not come up")
	}
	return c
}

// Attach sets the environment so that an example attaches to the daemon.
func (c Cluster) Attach(t testing.TB) { t.Setenv(mpi.EnvSocket, c.Socket) }

// InProcess sets the environment so that an example is a rank itself.
func (c Cluster) InProcess(t testing.TB, rank int) {
	t.Setenv(mpi.EnvConfig, c.Config)
	t.Setenv(mpi.EnvRank, fmt.Sprint(rank))
}

// signal is told that something is written to it.
type signal chan struct{}

func (s signal) Write(b []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(b), nil
}
