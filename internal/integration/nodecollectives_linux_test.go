package integration_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

var allCollectives = flag.Bool("all-collectives", false,
	"make the collective calls with deployed nodes in C as well, and under all faults")

const (
	collectiveCalls = 2 // of each program
	collectiveTime  = 60 * time.Second
)

// hostWord and nodeWord return word i of message k of the host and of the node.
func hostWord(k, i int) int32 { return int32(7000003*(k+1) + i) }
func nodeWord(k, i int) int32 { return int32(100000*k + i) }

func wordsOf[T int32 | uint32](n int, word func(i int) int32) (words []T) {
	for i := range n {
		words = append(words, T(word(i)))
	}
	return words
}

// nodeCollective is a collective call between a host, which is the root, and one node. The node's program makes the
// calls that upstream's compiler substitutes for the collective call.
type nodeCollective struct {
	name string
	// node returns the node's calls that match collective call k. at is the number of the first of them among the
	// node's calls.
	node func(k, at, n int) []nodeCall
	// host makes the call on communicator c with the n words in a, and the node's words in a[n:]. It returns the actual
	// and the expected result.
	host func(ctx context.Context, c *mpi.Comm, k, n int, a []int32) (got, want []int32, err error)
}

func sends(at, n int) nodeCall {
	return nodeCall{true, wordsOf[uint32](n, func(i int) int32 { return nodeWord(at, i) })}
}

var nodeCollectives = []nodeCollective{
	{"bcast", func(k, _, n int) []nodeCall {
		return []nodeCall{{false, wordsOf[uint32](n, func(i int) int32 { return hostWord(k, i) })}}
	}, func(ctx context.Context, c *mpi.Comm, _, n int, a []int32) (got, want []int32, err error) {
		return nil, nil, mpi.Bcast(ctx, c, a[:n], 0)
	}},
	{"scatter", func(k, _, n int) []nodeCall {
		return []nodeCall{{false, wordsOf[uint32](n, func(i int) int32 { return hostWord(k, n+i) })}}
	}, func(ctx context.Context, c *mpi.Comm, _, n int, a []int32) (got, want []int32, err error) {
		got = make([]int32, n)
		err = mpi.Scatter(ctx, c, a, got, 0)
		return got, a[:n], err
	}},
	{"gather", func(_, at, n int) []nodeCall {
		return []nodeCall{sends(at, n)}
	}, func(ctx context.Context, c *mpi.Comm, k, n int, a []int32) (got, want []int32, err error) {
		got = make([]int32, 2*n)
		err = mpi.Gather(ctx, c, a[:n], got, 0)
		return got, append(slices.Clone(a[:n]), wordsOf[int32](n, func(i int) int32 { return nodeWord(k, i) })...), err
	}},
	{"reduce", func(_, at, n int) []nodeCall {
		return []nodeCall{sends(at, n)}
	}, func(ctx context.Context, c *mpi.Comm, k, n int, a []int32) (got, want []int32, err error) {
		got = make([]int32, n)
		err = mpi.Reduce(ctx, c, a[:n], got, mpi.Sum, 0)
		return got, wordsOf[int32](n, func(i int) int32 { return a[i] + nodeWord(k, i) }), err
	}},
	{"allreduce", func(k, at, n int) []nodeCall {
		return []nodeCall{sends(at, n),
			{false, wordsOf[uint32](n, func(i int) int32 { return hostWord(k, i) + nodeWord(at, i) })}}
	}, func(ctx context.Context, c *mpi.Comm, k, n int, a []int32) (got, want []int32, err error) {
		got = make([]int32, n)
		err = mpi.Allreduce(ctx, c, a[:n], got, mpi.Sum)
		return got, wordsOf[int32](n, func(i int) int32 { return a[i] + nodeWord(2*k, i) }), err
	}},
	{"barrier", func(_, at, _ int) []nodeCall {
		return []nodeCall{sends(at, 1), {false, []uint32{0}}}
	}, func(ctx context.Context, c *mpi.Comm, _, _ int, _ []int32) (got, want []int32, err error) {
		return nil, nil, mpi.Barrier(ctx, c)
	}},
}

// nodeFault loses one datagram in calls of the given number of words. Datagrams are numbered from 0, over both
// directions together.
type nodeFault struct{ words, lost int }

// nodeFaults lose SEND_REQUEST, CLEAR_TO_SEND, DATA or ACK of the first message, or a continuation datagram.
var nodeFaults = []nodeFault{{300, 0}, {300, 1}, {300, 2}, {300, 3}, {1000, 3}}

type nodeRun struct {
	node string // fpga, cpu, or upstream's MPE
	c    bool   // the host's program is one in C
	nodeCollective
	nodeFault
}

func (r *nodeRun) String() string {
	language := "Go"
	if r.c {
		language = "C"
	}
	return fmt.Sprintf("%s of %d words, %s, %s, datagram %d lost", r.name, r.words, language, r.node, r.lost)
}

// collectiveLab runs collective calls at separate addresses.
type collectiveLab struct {
	t                   *testing.T
	calls, mpe, program string // programs on upstream's library, the simulator, and the program in C
	ips                 [4]string
}

// verdict runs a host and a node, and returns the outcome of the host's calls.
func (l *collectiveLab) verdict(r *nodeRun) string {
	host, hostRelayed, program, nodeRelayed := l.ips[0], l.ips[1], l.ips[2], l.ips[3]
	var rel *relay
	if !eventually(func() bool {
		var err error
		rel, err = newRelay(host, nodeRelayed, hostRelayed, program)
		return err == nil
	}) {
		return "the relay's addresses are in use"
	}
	defer rel.close()
	rel.lose(r.lost)
	var calls []nodeCall
	for k := range collectiveCalls {
		calls = append(calls, r.nodeCollective.node(k, len(calls), r.words)...)
	}
	var n deployedNode
	peer := "fpga"
	switch r.node {
	case "fpga":
		n = newNodeFPGA(l.t, 0, calls, program, hostRelayed)
	case "cpu":
		peer = "cpu"
		n = newNodeCPU(l.t, l.calls, 0, calls, program, hostRelayed)
	default:
		simulator := l.mpe + " 0 0"
		for _, c := range calls {
			simulator += fmt.Sprintf(" %c%d", map[bool]byte{true: 's', false: 'r'}[c.send], len(c.words))
		}
		m := &restartMPE{}
		m.start(l.t, simulator, program, hostRelayed)
		n = m
	}
	defer n.stop()
	file := filepath.Join(l.t.TempDir(), "job.yaml")
	text := fmt.Sprintf("control: {socket: \"\"}\ncollectives: {upstream: flat, force: allreduce=flat}\nranks:\n  - "+
		"{rank: 0, address: %q, run: host}\n  - {rank: 1, address: %q, peer: %s}\n",
		host+":2718", nodeRelayed+":2718", peer)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), collectiveTime)
	defer cancel()
	lines := r.inGo(ctx, file)
	if r.c {
		lines = l.inC(ctx, r, file)
	}
	if _, wrong := n.finished(); wrong {
		return "WRONG words at the node"
	}
	verdict := "right"
	for _, line := range lines {
		_, end, _ := strings.Cut(line, ": ")
		switch {
		case end == "right":
		case strings.HasPrefix(end, "error: ") && ctx.Err() == nil:
			verdict = "error"
		default:
			return line
		}
	}
	if len(lines) != collectiveCalls {
		return fmt.Sprintf("waits after %d calls", len(lines))
	}
	if verdict == "error" {
		l.t.Logf("%v: %s", r, strings.Join(lines, "; "))
	}
	return verdict
}

// inGo makes the calls in this process.
func (r *nodeRun) inGo(ctx context.Context, file string) (lines []string) {
	if r.c {
		return nil
	}
	cfg, err := config.Load(file)
	if err != nil {
		return []string{err.Error()}
	}
	d, err := node.Open(cfg, 0, nil)
	if err != nil {
		return []string{err.Error()}
	}
	defer d.Close(ended())
	world, err := mpi.New(d)
	if err != nil {
		return []string{err.Error()}
	}
	for k := range collectiveCalls {
		a := wordsOf[int32](2*r.words, func(i int) int32 { return hostWord(k, i) })
		got, want, err := r.host(ctx, world, k, r.words, a)
		line := "right"
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
			return lines
		case err != nil:
			line = "error: " + err.Error()
		case !slices.Equal(got, want):
			line = "WRONG"
		}
		lines = append(lines, fmt.Sprintf("call %d: %s", k, line))
	}
	return lines
}

// inC makes the calls in a program in C.
func (l *collectiveLab) inC(ctx context.Context, r *nodeRun, file string) (lines []string) {
	cmd := exec.CommandContext(ctx, l.program, r.name, fmt.Sprint(r.words), fmt.Sprint(collectiveCalls))
	cmd.Env = append(os.Environ(), "ZRLMPI_CONFIG="+file, "ZRLMPI_RANK=0")
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return []string{err.Error()}
	}
	text := bufio.NewScanner(stdout)
	for text.Scan() && text.Text() != "end" {
		lines = append(lines, text.Text())
	}
	stdin.Close()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return lines
}

// TestCollectivesOfDeployedNodes makes a collective call twice between a host and a deployed node while a datagram is
// lost. It checks that each call completes with the right words or an error.
func TestCollectivesOfDeployedNodes(t *testing.T) {
	program := ""
	if *allCollectives {
		program = filepath.Join(t.TempDir(), "collective")
		ourAPI(t)
		dir, err := libraryMade()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(filepath.Join(dir, "zrlmpicc"), "-o", program,
			"testdata/collective.c").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, kind := range []string{"fpga", "cpu", "upstream's MPE"} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			lab := collectiveLab{program: program}
			switch kind {
			case "cpu":
				lab.calls = buildCalls(t)
			case "upstream's MPE":
				lab.mpe = simulatedMPEs[kind](t)
			}
			var runs []nodeRun
			for _, c := range nodeCollectives {
				for i, f := range nodeFaults {
					for _, inC := range []bool{false, true} {
						if *allCollectives || !inC && i >= 2 {
							runs = append(runs, nodeRun{kind, inC, c, f})
						}
					}
				}
			}
			var mu sync.Mutex
			tally := map[string]int{}
			var next atomic.Int32
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					l := lab
					l.t = t
					for i := int(next.Add(1)) - 1; i < len(runs); i = int(next.Add(1)) - 1 {
						l.ips = labIPs(t) // new addresses for each run, because the state of a node is kept per address
						v := l.verdict(&runs[i])
						mu.Lock()
						tally[v]++
						mu.Unlock()
						if v != "right" && v != "error" {
							t.Errorf("%v: %s", &runs[i], v)
						}
					}
				})
			}
			wg.Wait()
			t.Logf("%d runs: %v", len(runs), tally)
		})
	}
}
