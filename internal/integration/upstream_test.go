package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/udp"
)

// upstreamEnv names a program: testdata/pingpong.cpp, built with upstream's CPU library as users build their programs.
const upstreamEnv = "ZRLMPI_UPSTREAM_PINGPONG"

// upstream returns the path of the program. No package contains upstream's library, so the program is available only if
// the user has built it.
func upstream(t *testing.T) string {
	t.Helper()
	path := os.Getenv(upstreamEnv)
	if path == "" {
		t.Skipf("NOT TESTED against upstream's CPU library: set %s to internal/integration/testdata/pingpong.cpp "+
			"built with it", upstreamEnv)
	}
	return path
}

// Addresses of the two ranks. Upstream's library increments ports from 2718 only for ranks that share an IP address, so
// the ranks have separate addresses, which no other test uses.
var upstreamIPs = []string{"127.0.77.1", "127.0.77.2"}

// engine starts our rank in a cluster of two.
func engine(t *testing.T, rank int, kind rankmap.Kind, peer handshake.Config) *mpe.Engine {
	t.Helper()
	return engineAt(t, upstreamIPs, rank, kind, peer)
}

// engineAt is like engine, at other addresses.
func engineAt(t *testing.T, ips []string, rank int, kind rankmap.Kind, peer handshake.Config) *mpe.Engine {
	t.Helper()
	entries := make([]rankmap.Entry, len(ips))
	for r, ip := range ips {
		entries[r] = rankmap.Entry{Rank: r, Addr: netip.AddrPortFrom(netip.MustParseAddr(ip), protocol.Port),
			Kind: rankmap.CPU}
	}
	entries[rank].Kind = kind
	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := udp.Listen(udp.Config{Rank: rank, Map: m, ReceiveBuffer: 16 << 20,
		Pace: func(int) udp.Pacing { return paceToCPU(t) }})
	if err != nil {
		t.Fatal(err)
	}
	peer.MaxWords = 1 << 22
	cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, len(entries))}
	cfg.Peers[1-rank] = mpe.Peer{Handshake: peer, Transport: conn}
	e, err := mpe.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		e.Close(ctx)
	})
	return e
}

// paceToCPU returns the default pacing towards an upstream CPU rank.
func paceToCPU(t *testing.T) udp.Pacing {
	t.Helper()
	cfg := config.New(config.Rank{Rank: 0, Run: config.RunHost}, config.Rank{Rank: 1, Peer: config.PeerCPU})
	l, err := node.NewLink(cfg, cfg.Rank(0), cfg.Rank(1))
	if err != nil {
		t.Fatal(err)
	}
	return udp.Pacing{PerDatagram: l.Pace.PerDatagram, OverWords: uint32(l.Pace.OverWords)}
}

// start runs the program as a rank of the cluster. end waits for it to exit and returns its output.
func start(ctx context.Context, t *testing.T, path string, rank int, arg string) (end func() (string, error)) {
	t.Helper()
	cmd := exec.CommandContext(ctx, path, "udp", upstreamIPs[rank], "2", fmt.Sprint(rank), upstreamIPs[1-rank], arg)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return sync.OnceValues(func() (string, error) {
		err := cmd.Wait()
		return out.String(), err
	})
}

var upstreamSizes = []struct {
	words int
	arg   string
}{{1, "1"}, {347, "347"}, {100_000, "100000"}, {600_000, "600000"}, {4_000_000, "4000000"}, {1, "1f"}, {347, "347f"},
	{100_000, "100000f"}}

func TestUpstreamProgramMeetsAStandIn(t *testing.T) { meetAStandIn(t, upstream(t), math.MaxInt) }

// meetAStandIn runs the program as the host of an FPGA, with messages of up to the given number of words.
func meetAStandIn(t *testing.T, path string, words int) {
	t.Helper()
	for _, size := range upstreamSizes {
		if size.words > words {
			continue
		}
		t.Run(size.arg, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			e := engine(t, 1, rankmap.FPGA, handshake.Config{
				Shape: protocol.FPGAShape(true), Timing: handshake.DeployedFPGA(1),
				Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true,
					CarryOver: true},
			})
			kernel, err := standin.New("echo", config.KernelOptions{}, standin.Env{})
			if err != nil {
				t.Fatal(err)
			}
			kctx, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- kernel.Run(kctx, e) }()
			out, err := start(ctx, t, path, 0, size.arg)()
			if err != nil || !strings.Contains(out, "words: ok") {
				t.Errorf("%v\n%s\n%+v", err, out, e.Snapshot())
			}
			stop()
			<-ended
			wedgetest.Check(t, e)
		})
	}
}

// facingUpstream returns a host's default settings for a peer configured as cpu.
func facingUpstream() handshake.Config {
	rules := handshake.CPUPeer()
	return handshake.Config{Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules)}
}

func TestUpstreamProgramMeetsAHost(t *testing.T) { meetAHost(t, upstream(t)) }

// meetAHost runs the program as the peer of a host.
func meetAHost(t *testing.T, path string) {
	t.Helper()
	for _, size := range upstreamSizes {
		t.Run(size.arg, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			e := engine(t, 0, rankmap.Software, facingUpstream())
			opts := mpe.Options{}
			if strings.HasSuffix(size.arg, "f") {
				opts.Datatype = protocol.Float
			}
			end := start(ctx, t, path, 1, size.arg)
			fail := func(format string, args ...any) {
				t.Helper()
				cancel()
				out, _ := end()
				t.Fatalf(format+"\n%s", append(args, out)...)
			}
			for round := range 3 {
				data := bytes.Repeat([]byte{byte(round), 1, 2, 0x96, byte(size.words)}, size.words*4/5+1)[:size.words*4]
				if _, err := e.Send(ctx, 1, data, opts); err != nil {
					fail("round %d: %v", round, err)
				}
				buf := make([]byte, len(data))
				st, err := e.Recv(ctx, 1, buf, opts)
				if err != nil || st.Words != uint32(size.words) || !bytes.Equal(buf, data) {
					fail("round %d: %d words, %v, intact %v", round, st.Words, err, bytes.Equal(buf, data))
				}
			}
			if out, err := end(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
