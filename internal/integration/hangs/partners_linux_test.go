package hangs_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/deploy/cosim/simulators"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// simulatedClock is the clock frequency of a simulated MPE in Hz. At this frequency, its timeouts take as long as on a
// deployed MPE.
const simulatedClock = 25_000

var upstreamCalls, upstreamMPE string // the programs

func init() {
	atEnd = append(atEnd, simulators.RemoveAll)
	partners = append([]partner{ // which take longest
		{"upstream's MPE in simulation", "fpga", 2, func(t *testing.T) {
			upstreamMPE = simulators.BuildMPE(t, "peer", simulators.EchoEdit, simulators.TimeoutEdit(simulatedClock/10))
		}, startMPE},
		{"upstream's CPU library", "cpu", 1, func(t *testing.T) { upstreamCalls = buildCalls(t) }, startCalls},
	}, partners...)
}

// buildCalls builds a program on upstream's CPU library that reads its calls from standard input.
func buildCalls(t *testing.T) string {
	t.Helper()
	const env = "ZRLMPI_UPSTREAM_SOURCE"
	checkout := os.Getenv(env)
	if checkout == "" {
		t.Skipf("NOT TESTED against upstream's CPU library: set %s to a checkout of github.com/cloudFPGA/ZRLMPI", env)
	}
	needs.Program(t, "upstream's CPU library", "g++", "g++")
	folder, err := os.MkdirTemp("", "hangs")
	if err != nil {
		t.Fatal(err)
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(folder) })
	path, library := filepath.Join(folder, "calls"), filepath.Join(checkout, "LIB/SW")
	cmd := exec.CommandContext(t.Context(), "g++", "-std=c++11", "-w", "-pthread", "-I", library, "-o", path,
		"../testdata/calls.cpp", filepath.Join(library, "ZRLMPI.cpp"), filepath.Join(library, "zrlmpi_common.cpp"))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, text)
	}
	return path
}

// callsNode is a process that runs this program.
type callsNode struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	isReady atomic.Bool
}

func startCalls(t *testing.T, rank int, own, peer netip.AddrPort, program string) deployedNode {
	t.Helper()
	args := []string{"udp", own.Addr().String(), fmt.Sprint(rank + 1), fmt.Sprint(rank), peer.Addr().String()}
	for other := 1; other < rank; other++ {
		args = append(args, own.Addr().Next().String())
	}
	n := &callsNode{cmd: exec.Command(upstreamCalls, args...)}
	stdin, err := n.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.stdin = stdin
	stdout, err := n.cmd.StdoutPipe()
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if lines.Text() == "ready" { // its socket is open
				n.isReady.Store(true)
			}
		}
	}()
	for _, c := range calls(program) {
		switch {
		case c.ends:
			err = stdin.Close()
		case c.sends:
			_, err = fmt.Fprintf(stdin, "send 0 %08x%s\n", c.number, strings.Repeat("0", 8*(c.words-1)))
		default:
			_, err = fmt.Fprintf(stdin, "recv 0 %d\n", c.words)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *callsNode) ready() bool { return n.isReady.Load() }
func (n *callsNode) pause()      { _ = n.cmd.Process.Signal(syscall.SIGSTOP) }
func (n *callsNode) stop() {
	_ = n.cmd.Process.Kill()
	n.stdin.Close()
	_ = n.cmd.Wait()
}

// mpeNode is a simulated MPE, in a daemon in this process.
type mpeNode struct {
	*daemon.Daemon
	cancel   context.CancelFunc
	ended    chan error
	hasRanks written
	isOpen   bool
}

// written is a writer that records whether anything was written.
type written struct{ atomic.Bool }

func (w *written) Write(b []byte) (int, error) {
	w.Store(true)
	return len(b), nil
}

func startMPE(t *testing.T, rank int, own, peer netip.AddrPort, program string) deployedNode {
	t.Helper()
	text := fmt.Sprintf("control: {socket: \"\"}\nhttp: {listen: \"\"}\nranks:\n"+
		"  - {rank: 0, address: %q, peer: software}\n", peer)
	for other := 1; other < rank; other++ {
		text += fmt.Sprintf("  - {rank: %d, address: %q, peer: software}\n", other, own.Addr().Next())
	}
	text += fmt.Sprintf("  - {rank: %d, address: %q, run: standin, kernel: \"rtl-net:cycles_per_second=%d %s 0 "+
		"0 %s\"}\n",
		rank, own, simulatedClock, upstreamMPE, strings.TrimSuffix(program, " e"))
	cfg, err := config.Parse(strings.NewReader(text), "mpe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := &mpeNode{ended: make(chan error, 1)}
	if n.Daemon, err = daemon.New(cfg, daemon.Options{ReadyWriter: &n.hasRanks}); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	go func() { n.ended <- n.Run(ctx) }()
	return n
}

func (n *mpeNode) ready() bool {
	if !n.isOpen && n.hasRanks.Load() {
		s := n.Status()
		n.isOpen = len(s.Ranks) == 1 && s.Ranks[0].KernelStats != nil && s.Ranks[0].KernelStats.Simulation != nil &&
			s.Ranks[0].KernelStats.Simulation.Cycle > 100
	}
	return n.isOpen
}

func (n *mpeNode) pause() {} // no process to stop, so the relay drops all packets instead
func (n *mpeNode) stop() {
	n.cancel()
	<-n.ended
}
