package integration_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
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
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Restarts of real processes: a rank exchanges messages with a deployed node, and its process is killed at a particular
// packet.

var allRestarts = flag.Bool("all-restarts", false, "kill a rank at each packet of all exchanges")

// restartOrder is the environment variable that holds the order for a rank's process.
const restartOrder = "ZRLMPI_TEST_RESTART"

func init() { testPrograms[restartOrder] = restarted }

// order contains the instructions for a process that runs rank 0.
type order struct {
	// Config is the configuration of a job or a daemon.
	Config string
	Daemon bool
	State  string
	// Calls exchange messages of Words words each with rank 1.
	Calls []restartCall
	Words int
	// Later is the delay between the start of the process and the calls.
	Later time.Duration
}

// restartCall sends or receives a message.
type restartCall struct {
	Send    bool
	Message int
}

// restarted executes an order. It prints a line when it is ready, and one for each completed call.
func restarted(text string) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Println("error", err)
		return
	}
	d, err := o.open()
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("ready")
	time.Sleep(o.Later)
	for _, c := range o.Calls {
		buf := make([]byte, o.Words*protocol.WordLen)
		op := mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: buf}
		if c.Send {
			op.Kind = mpe.OpSend
			copy(buf, wordBytes(restartWords(o.Words, c.Message)))
		}
		p, err := d.Start(op)
		if err == nil {
			_, err = p.Await(context.Background())
		}
		if err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("done", c.Message, hex.EncodeToString(buf[:min(len(buf), 64)]))
	}
	fmt.Println("end")
	select {} // until killed
}

// open opens rank 0.
func (o *order) open() (mpe.Device, error) {
	if !o.Daemon {
		return node.OpenFile(o.Config, 0)
	}
	cfg, err := config.Load(o.Config)
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{}, 1)
	d, err := daemon.New(cfg, daemon.Options{StateDirectory: o.State, ReadyWriter: notify(ready)})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(context.Background()) }()
	select {
	case <-ready:
	case err := <-ended:
		return nil, err
	}
	return attach.Dial(context.Background(), cfg.AttachSocket(), 0)
}

// restartWords returns message i.
func restartWords(n, i int) []uint32 {
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	words := make([]uint32, n)
	for j := range words {
		words[j] = rng.Uint32()
	}
	return words
}

// restartCase is a test run.
type restartCase struct {
	node         string // fpga or cpu, or one of simulatedMPEs
	daemon, send bool   // the rank sends messages; a simulated MPE echoes them in either case
	words        int
	peer         bool // kill the node instead of the rank
	sent         bool // kill at the nth packet that the rank sends, or else at the nth that it receives
	nth          int
	down, later  time.Duration
}

func (c restartCase) String() string {
	who, does, at := "job", "receives", "received"
	if c.daemon {
		who = "daemon"
	}
	switch {
	case c.simulated():
		does = "echoes"
	case c.send:
		does = "sends"
	}
	if c.sent {
		at = "sent"
	}
	if c.peer {
		at += ", its peer is"
	}
	return fmt.Sprintf("%s %s %d words, %s, killed when packet %d is %s, up after %v, calls %v later", who, does,
		c.words, c.node, c.nth, at, c.down, c.later)
}

// restartCases returns all runs with a kind of node: two consecutive messages, with the rank or the node killed at each
// packet of the first message.
func restartCases(kind string, peer bool) (all []restartCase) {
	for _, send := range []bool{true, false} {
		for _, words := range []int{1, 346, 1000} {
			for i, down := range []time.Duration{50 * time.Millisecond, 1500 * time.Millisecond} {
				for packet := range 4 { // SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK
					c := restartCase{node: kind, peer: peer, send: send, words: words, down: down,
						daemon: (packet+i)%2 == 0}
					c.sent, c.nth = send == (packet%2 == 0), packet/2
					all = append(all, c)
				}
			}
		}
	}
	return all
}

const restartMessages = 2

// calls returns the calls of rank 0.
func (c restartCase) calls() (calls []restartCall) {
	for i := range restartMessages {
		calls = append(calls, restartCall{c.send, i})
		if c.simulated() {
			calls = append(calls, restartCall{!c.send, i})
		}
	}
	return calls
}

// program returns the calls of the node, starting with call number from.
func (c restartCase) program(from int) (program []nodeCall) {
	for i := from; i < restartMessages; i++ {
		program = append(program, nodeCall{!c.send, restartWords(c.words, i)})
	}
	return program
}

// restartLab runs cases at separate addresses.
type restartLab struct {
	t     *testing.T
	calls string // the program on upstream's library
	mpe   string // the simulator of an MPE
	ips   [4]string
	n     int
}

// verdict runs a case and returns its outcome.
func (l *restartLab) verdict(c restartCase) string {
	l.n++
	dir := filepath.Join(l.t.TempDir(), fmt.Sprint(l.n))
	host, hostRelayed, program, nodeRelayed := l.ips[0], l.ips[1], l.ips[2], l.ips[3]
	peer := "fpga"
	if c.node == "cpu" {
		peer = "cpu"
	}
	text := fmt.Sprintf("control: {socket: %q}\nattach: {socket: %q}\nhttp: {listen: \"\"}\nranks:\n  - {rank: 0, "+
		"address: %q, run: host}\n  - {rank: 1, address: %q, peer: %s}\n",
		dir+"/c.sock", dir+"/a.sock", host+":2718", nodeRelayed+":2718", peer)
	file := filepath.Join(dir, "zrlmpid.yaml")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		l.t.Fatal(err)
	}
	var r *relay
	if !eventually(func() bool {
		var err error
		r, err = newRelay(host, nodeRelayed, hostRelayed, program)
		return err == nil
	}) {
		l.t.Error("the relay's addresses are in use")
		return "not run"
	}
	defer r.close()
	newNode := func(from int) deployedNode {
		switch {
		case c.simulated():
			return newRestartMPE(l.t, c, l.mpe, program, hostRelayed)
		case c.node == "cpu":
			return newNodeCPU(l.t, l.calls, from, c.program(from), program, hostRelayed)
		}
		return newNodeFPGA(l.t, from, c.program(from), program, hostRelayed)
	}
	n := newNode(0)
	defer func() { n.stop() }()
	mpe, _ := n.(*restartMPE)
	o := order{Config: file, Daemon: c.daemon, State: dir + "/state", Words: c.words, Calls: c.calls()}
	var first *restartProcess
	var counts [2]atomic.Int32
	started, killed := make(chan struct{}), make(chan struct{})
	r.mu.Lock()
	r.passing = func(fromHost bool, b []byte) {
		if mpe != nil {
			mpe.see(fromHost, b)
		}
		i := 0
		if fromHost == c.sent {
			i = 1
		}
		if int(counts[i].Add(1)) == c.nth+1 && i == 1 {
			<-started
			if c.peer {
				n.stop()
			} else {
				first.kill()
			}
			close(killed)
		}
	}
	r.mu.Unlock()
	first = l.start(o)
	close(started)
	select {
	case <-killed:
	case <-time.After(20 * time.Second):
		first.kill()
		return "not killed: " + strings.Join(first.lines(), "; ")
	}
	if c.peer {
		time.Sleep(c.down)
		n = newNode(len(first.out))
		return l.judge(c, n, first)
	}
	before := first.lines()
	time.Sleep(c.down)
	done, _ := n.finished()
	returned := 0
	for _, line := range before {
		if strings.HasPrefix(line, "done") {
			returned++
		}
	}
	o.Calls, o.Later = o.Calls[max(done, returned):], c.later
	return l.judge(c, n, l.start(o))
}

// judge returns the outcome of the last process's calls.
func (l *restartLab) judge(c restartCase, n deployedNode, again *restartProcess) string {
	defer again.kill()
	for {
		select {
		case line, ok := <-again.out:
			switch {
			case !ok:
				return "the process has exited"
			case strings.HasPrefix(line, "error") && strings.Contains(line, restartText[c.peer]):
				l.t.Log(line)
				return "error that names the restart"
			case strings.HasPrefix(line, "error"):
				return line
			case line == "end":
				if !eventually(func() bool { n, _ := n.finished(); return n == len(c.calls()) }) {
					return "the node waits forever"
				}
				if _, wrong := n.finished(); wrong {
					return "WRONG words"
				}
				return "right"
			case strings.HasPrefix(line, "done"):
				var i int
				var words string
				fmt.Sscan(line[len("done"):], &i, &words)
				if !strings.HasPrefix(hex.EncodeToString(wordBytes(restartWords(c.words, i))), words) {
					return "WRONG words"
				}
			}
		case <-time.After(30 * time.Second):
			return "waits for 30 s"
		}
	}
}

// restartText is the error text for a restart of the rank (false) and of its peer (true).
var restartText = map[bool]string{false: "an earlier process of rank 0", true: "restart"}

// restartProcess is a process that executes an order.
type restartProcess struct {
	cmd  *exec.Cmd
	out  chan string
	once sync.Once
}

func (l *restartLab) start(o order) *restartProcess {
	text, err := json.Marshal(o)
	if err != nil {
		l.t.Fatal(err)
	}
	p := &restartProcess{cmd: exec.Command(os.Args[0]), out: make(chan string, 16)}
	p.cmd.Env = append(os.Environ(), restartOrder+"="+string(text), "XDG_STATE_HOME="+o.State)
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		defer close(p.out)
		lines := bufio.NewScanner(stdout)
		for begun := false; lines.Scan(); {
			if lines.Text() == "ready" && !begun {
				begun = true
				close(ready)
				continue
			}
			p.out <- lines.Text()
		}
	}()
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		l.t.Errorf("the process is not ready")
	}
	return p
}

// kill kills the process and waits until it is gone.
func (p *restartProcess) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_, _ = p.cmd.Process.Wait()
	})
}

// lines returns the remaining output of a killed process.
func (p *restartProcess) lines() (all []string) {
	for line := range p.out {
		all = append(all, line)
	}
	return all
}

// TestProcessIsRestarted kills the process of a rank, which belongs to a job or a daemon, at a packet of an exchange
// and restarts it soon. It checks that the rank completes the exchange, or reports within 30 s that the restart
// prevents that.
func TestProcessIsRestarted(t *testing.T) {
	for _, kind := range []string{"fpga", "cpu"} {
		t.Run(kind, func(t *testing.T) {
			calls := ""
			if kind == "cpu" {
				calls = buildCalls(t)
			}
			cases := append(restartCases(kind, false), restartCases(kind, true)...)
			if !*allRestarts {
				cases = slices.DeleteFunc(cases,
					func(c restartCase) bool { return c.words == 346 || c.down > time.Second })
			}
			runRestarts(t, restartLab{calls: calls}, 8, cases)
		})
	}
}

// TestProgramCallsLaterThanItsPeerAsks kills the process after the peer sent CLEAR_TO_SEND. The next program sends only
// after the peer's last CLEAR_TO_SEND.
func TestProgramCallsLaterThanItsPeerAsks(t *testing.T) {
	for _, kind := range []string{"fpga", "cpu"} {
		t.Run(kind, func(t *testing.T) {
			calls := ""
			if kind == "cpu" {
				calls = buildCalls(t)
			}
			var cases []restartCase
			for i, later := range []time.Duration{300 * time.Millisecond, 2 * time.Second, 4 * time.Second,
				6 * time.Second} {
				cases = append(cases, restartCase{node: kind, send: true, words: 1000, daemon: i%2 == 0,
					down: 50 * time.Millisecond, later: later})
			}
			runRestarts(t, restartLab{calls: calls}, 8, cases)
		})
	}
}

// runRestarts runs cases, several at a time.
func runRestarts(t *testing.T, lab restartLab, atOnce int, cases []restartCase) {
	var mu sync.Mutex
	tally := map[string]int{}
	var next atomic.Int32
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			l := lab
			l.t, l.ips = t, labIPs(t)
			for i := int(next.Add(1)) - 1; i < len(cases); i = int(next.Add(1)) - 1 {
				began := time.Now()
				v := l.verdict(cases[i])
				mu.Lock()
				tally[v]++
				mu.Unlock()
				t.Logf("%v: %s (%v)", cases[i], v, time.Since(began).Round(time.Millisecond))
				if v != "right" && v != "error that names the restart" {
					t.Errorf("%v: %s", cases[i], v)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d runs: %v", len(cases), tally)
}
