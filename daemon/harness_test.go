package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
)

// testTimeout is the maximum time that a test waits for an event.
const testTimeout = 20 * time.Second

// cluster contains the addresses and the control socket used by a test.
type cluster struct{ network, socket string }

func newCluster(t testing.TB) cluster {
	return cluster{network: loopback.Network(t), socket: filepath.Join(t.TempDir(), "c.sock")}
}

func (c cluster) addr(rank int) string {
	return fmt.Sprintf("%s%d:2718", c.network, rank+1)
}

// yaml returns a configuration. Rank i, counted from 0, has the i-th address of the cluster.
func (c cluster) yaml(extra string, ranks ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: %q}\n%s\n", c.socket, extra)
	if !strings.Contains(extra, "http:") {
		b.WriteString("http: {listen: \"\"}\n")
	}
	b.WriteString("ranks:\n")
	for i, r := range ranks {
		fmt.Fprintf(&b, "  - {rank: %d, address: %q, %s}\n", i, c.addr(i), r)
	}
	return b.String()
}

// echoes returns the configuration entries of a host and of n stand-ins that run echo.
func echoes(n int, more string) []string {
	ranks := []string{"run: host"}
	for range n {
		ranks = append(ranks, "run: standin"+more)
	}
	return ranks
}

func mustParse(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// running is a daemon under test.
type running struct {
	*Daemon
	client *control.Client
	ready  string
	log    *syncBuffer
	stop   func() error
}

// start runs a daemon until the test ends or stop is called.
func start(t testing.TB, text string) *running {
	t.Helper()
	return startWith(t, text, func(*Options) {})
}

// startWith is like start, but lets change modify the options.
func startWith(t testing.TB, text string, change func(*Options)) *running {
	t.Helper()
	log := &syncBuffer{grew: make(chan struct{}, 1)}
	pr, pw := io.Pipe()
	opts := Options{Log: wedgetest.Log(t, testLogger(log)), ReadyWriter: pw, ConfigSource: "test.yaml"}
	change(&opts)
	d, err := New(mustParse(t, text), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := d.Run(ctx)
		pw.CloseWithError(fmt.Errorf("the daemon ended: %w", err))
		ended <- err
	}()
	line := make([]byte, 64<<10)
	n, err := pr.Read(line)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	r := &running{Daemon: d, client: control.NewClient(d.cfg.ControlSocket()), ready: string(line[:n]), log: log}
	r.stop = sync.OnceValue(func() error {
		r.client.Close()
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func testLogger(w zapcore.WriteSyncer) *zap.Logger {
	ec := zap.NewDevelopmentEncoderConfig()
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(ec), w, zapcore.DebugLevel))
}

// syncBuffer is a log whose content a test can wait for.
type syncBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	grew chan struct{}
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.grew <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *syncBuffer) Sync() error { return nil }

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// waitFor waits until the log contains text.
func (s *syncBuffer) waitFor(t testing.TB, text string) {
	t.Helper()
	late := time.After(testTimeout)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.grew:
		case <-late:
			t.Fatalf("the log never said %q:\n%s", text, s)
		}
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// ping makes round trips. It fails the test unless all of them are verified.
func (r *running) ping(t testing.TB, to, words, count int) {
	t.Helper()
	trips := 0
	err := r.client.Ping(within(t), control.PingRequest{
		From: control.AnyRank, To: to, Words: words, Count: count, Datatype: "int", Timeout: "10s",
	}, func(trip control.Trip) error {
		trips++
		if !trip.Verified || trip.Error != "" {
			return fmt.Errorf("%+v", trip)
		}
		return nil
	})
	if err != nil || trips != count {
		t.Errorf("ping of rank %d with %d words: %d of %d trips, %v", to, words, trips, count, err)
	}
}
