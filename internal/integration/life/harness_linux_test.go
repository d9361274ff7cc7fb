package life

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

// limit is the time limit of a wait in a test, on a busy machine.
const limit = 30 * time.Second

// TestMain runs an attached program if the test binary is started as one.
func TestMain(m *testing.M) {
	if socket := os.Getenv(programSocket); socket != "" {
		program(socket)
		return
	}
	os.Exit(statetest.Run(m))
}

// zrlmpid returns the path of the program, which is built once.
var zrlmpid = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "zrlmpid-life")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "zrlmpid")
	if out, err := exec.Command("go", "build", "-o", path, "../../../cmd/zrlmpid").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// place is the network of a test's ranks, as the first three bytes of their addresses.
type place string

func newPlace(t testing.TB) place { return place(loopback.Network(t)) }

func (p place) addr(rank int) string { return fmt.Sprintf("%s%d:2718", p, rank+1) }

// process is a zrlmpid process.
type process struct {
	t      testing.TB
	config string
	socket string
	log    string
	// host is the host on which it runs, or nil.
	host   *netnstest.Host
	cmd    *exec.Cmd // nil if it is not running
	exited chan struct{}
	client *control.Client
}

// newProcess prepares a zrlmpid, but does not start it. ranks lists the entries of the configuration, and more is
// additional YAML.
func newProcess(t testing.TB, more string, ranks ...string) *process {
	t.Helper()
	folder := t.TempDir()
	p := &process{t: t, config: filepath.Join(folder, "z.yaml"), socket: filepath.Join(folder, "c.sock"),
		log: filepath.Join(folder, "log")}
	text := fmt.Sprintf("control: {socket: %q}\n%s\nranks:\n%s\n", p.socket, more, strings.Join(ranks, "\n"))
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.client = control.NewClient(p.socket)
	t.Cleanup(func() {
		p.kill()
		p.client.Close()
	})
	return p
}

// start starts the process and waits until it is ready.
func (p *process) start() {
	p.t.Helper()
	path, err := zrlmpid()
	if err != nil {
		p.t.Fatal(err)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, "-config", p.config)
	cmd.Stdout, cmd.Stderr = log, log
	if p.host == nil {
		err = cmd.Start()
	} else {
		p.host.Do(func() { err = cmd.Start() })
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd, p.exited = cmd, make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go func() {
		_ = cmd.Wait()
		cancel()
		close(p.exited)
	}()
	if _, err := p.client.WaitReady(ctx); err != nil || ctx.Err() != nil {
		text, _ := os.ReadFile(p.log)
		p.t.Fatalf("%v\n%s", err, text)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// stop stops the process as a debugger does, and waits until it is stopped.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	until(p.t, "the process stops", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
}

// kill kills the process if it is running.
func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		p.wait()
	}
}

// terminate ends the process like systemd.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	p.wait()
}

// wait waits for the process to exit.
func (p *process) wait() {
	<-p.exited
	p.cmd = nil
	p.client.Close()
}

// attachSocket returns the path of the socket for attaching programs.
func (p *process) attachSocket() string {
	return strings.TrimSuffix(p.socket, ".sock") + "-attach.sock"
}

// attach attaches to a rank until the test ends.
func (p *process) attach(rank int) *attach.Client {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := attach.Dial(ctx, p.attachSocket(), rank)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close(over()) })
	return c
}

// rank returns the state of a rank's engine.
func (p *process) rank(rank int) state.Engine {
	p.t.Helper()
	return p.local(rank).Engine
}

// local returns the state of a rank.
func (p *process) local(rank int) state.Rank {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s, err := p.client.Status(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range s.Ranks {
		if s.Ranks[i].Rank == rank {
			return s.Ranks[i]
		}
	}
	p.t.Fatalf("the daemon does not have rank %d", rank)
	return state.Rank{}
}

// over returns a context that is already done.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// until waits until an observable condition holds.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(limit)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("timed out: %s", what)
		}
	}
}

// begin posts an operation.
func begin(t testing.TB, d mpe.Device, op mpe.Operation) mpe.Op {
	t.Helper()
	o, err := d.Start(op)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// outcome waits for an operation to complete and returns its error.
func outcome(t testing.TB, o mpe.Op) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, err := o.Await(ctx)
	if ctx.Err() != nil {
		t.Fatalf("it does not end by itself: %v", err)
	}
	o.Free()
	return err
}

// transfer sends data from one device to another, which receives from exactly that source.
func transfer(t testing.TB, from, to mpe.Device, data []byte) {
	t.Helper()
	buf := make([]byte, len(data))
	r := begin(t, to, mpe.Operation{Kind: mpe.OpRecv, Peer: from.Rank(), Tag: 77, Buf: buf})
	s := begin(t, from, mpe.Operation{Kind: mpe.OpSend, Peer: to.Rank(), Tag: 77, Buf: data})
	if err := outcome(t, s); err != nil {
		t.Errorf("send from rank %d: %v", from.Rank(), err)
	}
	if err := outcome(t, r); err != nil || string(buf) != string(data) {
		t.Errorf("receive from rank %d: %v, intact: %v", from.Rank(), err, string(buf) == string(data))
	}
}
