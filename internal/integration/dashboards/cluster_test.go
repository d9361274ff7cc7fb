package dashboards_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

func TestMain(m *testing.M) { os.Exit(statetest.Run(m)) }

// network is the prefix of the ranks' addresses: their first three bytes.
type network string

func newNetwork(t testing.TB) network { return network(loopback.Network(t)) }

// address returns the i-th address.
func (n network) address(i int) netip.AddrPort {
	return netip.MustParseAddrPort(fmt.Sprintf("%s%d:2718", n, i+1))
}

// running is a daemon started by a test.
type running struct {
	*daemon.Daemon
	target string // for Prometheus
	client *control.Client
	socket string // for control
}

var webAddress = regexp.MustCompile(`http http://(\S+?)/?\s`)

// startDaemon runs a daemon until the test ends.
func startDaemon(t *testing.T, opts daemon.Options, extra string, ranks ...string) *running {
	t.Helper()
	d := daemontest.Start(t, opts, "http: {listen: \"127.0.0.1:0\"}\n"+extra, ranks...)
	m := webAddress.FindStringSubmatch(d.ReadyLine)
	if m == nil {
		t.Fatalf("no HTTP: %s", d.ReadyLine)
	}
	return &running{d.Daemon, m[1], d.Client, d.Socket}
}

// keep calls do in a loop until the test ends, and ignores failures. A call begins at most every 20 ms, because
// Prometheus and the other daemons need the processors too.
func keep(t *testing.T, do func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tick, ended := time.NewTicker(20*time.Millisecond), make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			do(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		tick.Stop()
	})
}

// ping sends messages to an echo kernel and waits for the echoes, until the test ends.
func (r *running) ping(t *testing.T, peer int) {
	keep(t, func(ctx context.Context) {
		req := control.PingRequest{From: 0, To: peer, Words: 100, Count: 10, Datatype: "int", Timeout: "0s"}
		r.client.Ping(ctx, req, func(control.Trip) error { return nil })
	})
}

// send sends to a peer in a loop.
func (r *running) send(t *testing.T, peer int) {
	keep(t, func(ctx context.Context) {
		r.client.Send(ctx, control.SendRequest{From: 0, To: peer}, strings.NewReader("wordword"))
	})
}

// socket opens a UDP socket for the test.
func socket(t *testing.T, address netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
