package standin_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// spec returns the specification of a kernel that runs one of the programs in this test binary.
func spec(t *testing.T, program ...string) string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(self, " \t") {
		t.Fatalf("kernel specifications are split at blanks, and the test binary is %q", self)
	}
	return "exec:" + self + " " + programArg + " " + strings.Join(program, " ")
}

// until waits until a condition is met that another goroutine establishes.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// said returns the lines that the program has written to its standard error.
func (r *running) said() (lines []string) {
	for _, e := range r.logs.FilterMessage("program output").All() {
		lines = append(lines, e.ContextMap()["line"].(string))
	}
	return lines
}

// failures returns the errors after which the kernel restarted its loop.
func (r *running) failures() (errs []string) {
	for _, e := range r.logs.FilterMessage("kernel restarts its loop").All() {
		errs = append(errs, e.ContextMap()["error"].(string))
	}
	return errs
}

func TestExec(t *testing.T) {
	c := newCluster(t, 3)
	defer c.close()
	k := c.run(2, spec(t, "echo"), config.KernelOptions{})
	for i, n := range []int{1, 346, 347, 5000, maxWords} {
		d := protocol.Datatype(i % 2)
		c.send(2, words(n, uint32(n)), d)
		c.recv(2, words(n, uint32(n)), 1-d)
	}
	until(t, "the last feedback", func() bool { return k.Stats().Sent == 5 })
	k.cancel(t)
	if s := k.Stats(); s.Starts != 1 || s.Errors != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestExecEnvironmentAndEndOfWork(t *testing.T) {
	c := newCluster(t, 3)
	defer c.close()
	k := c.run(2, spec(t, "environment"), config.KernelOptions{Words: 10})
	c.recv(2, []byte{2, 0, 0, 0, 3, 0, 0, 0}, protocol.Int)
	if err := k.wait(t); err != nil {
		t.Errorf("exit status 0 ended the kernel with %v", err)
	}
}

// TestExecDocumentedExample checks that the documented example is correct in every byte.
func TestExecDocumentedExample(t *testing.T) {
	doc, err := filepath.Abs("../../docs/mpe_interface.md")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 2)
	defer c.close()
	k := c.run(1, spec(t, "play", doc), config.KernelOptions{})
	c.send(1, []byte{0x0a, 0, 0, 0, 0x0b, 0, 0, 0, 0x0c, 0, 0, 0}, protocol.Int)
	c.recv(1, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, protocol.Float)
	if err := k.wait(t); err != nil || len(k.said()) > 0 || k.Stats().Starts != 1 {
		t.Errorf("ended with %v, said %q, failed with %q", err, k.said(), k.failures())
	}
}

func TestExecExampleInC(t *testing.T) {
	cc := needs.Program(t, "the documented C program", "cc", "gcc libc6-dev")
	program := filepath.Join(t.TempDir(), "increment")
	if out, err := exec.Command(cc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", program,
		"testdata/increment.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := newCluster(t, 2)
	defer c.close()
	k := c.run(1, "exec:"+program, config.KernelOptions{})
	c.send(1, words(4097, 1), protocol.Int) // longer than the posted receive
	for range 3 {
		c.send(1, []byte{1, 0, 0, 0, 0xff, 0xff, 0, 0}, protocol.Int)
		c.recv(1, []byte{2, 0, 0, 0, 0, 0, 1, 0}, protocol.Int)
	}
	k.cancel(t)
	if s := k.said(); len(s) != 2 || s[0] != "rank 1 of 2" ||
		!strings.HasPrefix(s[1], "failed: rank 0 sent 4097 words") {
		t.Errorf("said %q", s)
	}
}

// TestExecFailingCalls checks that failed calls are answered, and that the program can then make further calls.
func TestExecFailingCalls(t *testing.T) {
	tests := []struct {
		name    string
		program []string
		send    []byte
		want    string
	}{
		{"receive from unknown rank", []string{"failing", "1", "5", "77"}, nil, "status 2: rank 77: no such peer"},
		{"a rank in the other byte order", []string{"failing", "1", "0", "0x01000000"}, nil,
			"status 2: rank 16777216: no such peer: the cluster has ranks 0 to 1: read as big-endian it has count 0 " +
				"and rank 1"},
		{"receive from itself", []string{"failing", "3", "5", "1"}, nil, "status 2: rank 1: no such peer"},
		{"send to unknown rank", []string{"failing", "0", "5", "0xffffffff"}, nil, "no such peer"},
		{"send to itself", []string{"failing", "0", "100", "1"}, nil, "status 2: rank 1: no such peer"},
		{"barrier", []string{"failing", "4", "0", "0"}, nil, "status 2: barrier not supported"},
		{"truncated", []string{"failing", "1", "2", "0"}, words(3, 1),
			"status 2: rank 0 sent 3 words, but the posted buffer holds 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t, 2)
			defer c.close()
			k := c.run(1, spec(t, tt.program...), config.KernelOptions{Words: 100})
			if tt.send != nil {
				c.send(1, tt.send, protocol.Int)
			}
			c.recv(1, []byte{1, 2, 3, 4}, protocol.Int)
			if err := k.wait(t); err != nil {
				t.Error(err)
			}
			if s := k.said(); len(s) != 1 || !strings.Contains(s[0], tt.want) {
				t.Errorf("said %q, want %q", s, tt.want)
			}
			if s := k.Stats(); s.Starts != 1 || s.Errors != 1 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

// TestExecMalformedCalls checks that a program that makes malformed calls is stopped and later restarted, and
// that it cannot block the kernel.
func TestExecMalformedCalls(t *testing.T) {
	tests := []struct {
		name    string
		program []string
		want    string
	}{
		{"unknown call", []string{"write", "c80500000000000000", "wait"},
			"malformed call on the MPE interface: call(200) with count 5 and rank 0"},
		{"a text", []string{"write", hexOf("Hello, world, I am a program"), "wait"},
			"malformed call on the MPE interface: the program has written the text \"Hello, wo\" to its standard " +
				"output, which carries calls: write text to standard error"},
		{"the other byte order", []string{"write", "010000001000000000", "wait"},
			"RECV_INT with count 268435456 and rank 0: read as big-endian it has count 16 and rank 0, but the " +
				"interface is little-endian"},
		{"send over the maximum", []string{"write", "00ffffffff00000000", "wait"},
			"SEND_INT with count 4294967295 and rank 0: messages have at most 100 words: raise kernel_options.words"},
		{"receive over the maximum", []string{"write", "036500000000000000", "wait"},
			"RECV_FLOAT with count 101 and rank 0: messages have at most 100 words: raise kernel_options.words"},
		{"part of a call", []string{"write", "00050000", "0"}, "incomplete call: the program wrote 4 of 9 bytes"},
		{"part of the data", []string{"write", "02020000000000000001020304", "0"},
			"SEND_FLOAT with count 2 and rank 0: incomplete data: the program wrote 4 of 8 bytes"},
		{"none of the data", []string{"write", "020200000000000000", "7"},
			"the program wrote 0 of 8 bytes: unexpected EOF (program ended: exit status 7)"},
		{"does not wait for its feedback", []string{"write", "010200000000000000", "0"},
			"exited before it read the feedback"},
		{"fails", []string{"write", "-", "5"}, "program ended: exit status 5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t, 2)
			defer c.close()
			k := c.run(1, spec(t, tt.program...), config.KernelOptions{Words: 100})
			until(t, "a second start", func() bool { return k.Stats().Starts >= 2 })
			k.cancel(t)
			if f := k.failures(); len(f) == 0 || !strings.Contains(f[0], tt.want) {
				t.Errorf("failed with %q, want %q", f, tt.want)
			}
		})
	}
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

func TestExecRestartsAfterCrash(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k := c.run(1, spec(t, "crash"), config.KernelOptions{Words: 100})
	for i := range uint32(3) {
		c.send(1, words(1, i), protocol.Int)
	}
	until(t, "a fourth start", func() bool { return k.Stats().Starts == 4 })
	k.cancel(t)
	if f := k.failures(); len(f) != 3 || f[2] != "program ended: exit status 3" {
		t.Errorf("failed with %q", f)
	}
}

func TestExecStandardError(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k := c.run(1, spec(t, "talk"), config.KernelOptions{Words: 1})
	if err := k.wait(t); err != nil {
		t.Error(err)
	}
	want := []string{"short", strings.Repeat("x", 1024), "", "bad \uFFFD byte", "no newline"}
	if s := k.said(); !slices.Equal(s, want) {
		t.Errorf("said %q, want %q", s, want)
	}
}

// runWithGrace is like run, but uses a short grace period.
func (c *cluster) runWithGrace(rank int, spec string, grace time.Duration) *running {
	c.t.Helper()
	r := c.prepare(spec, config.KernelOptions{Words: 100})
	standin.SetGrace(r.Kernel, grace)
	c.start(rank, r)
	return r
}

// TestExecCancelKillsAll checks that, when the context ends, a program that ignores SIGTERM is killed together
// with its children.
func TestExecCancelKillsAll(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	family, socket := listen(t)
	k := c.runWithGrace(1, spec(t, "stubborn", "parent", socket), 50*time.Millisecond)
	parent, child := accept(t, family)
	k.cancel(t)
	gone(t, parent)
	gone(t, child)
	nothingLeft(t)
}

// TestExecExitKillsChildren checks that the rest of a program's process group is killed when the program exits.
func TestExecExitKillsChildren(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	family, socket := listen(t)
	k := c.run(1, spec(t, "stubborn", "parent", socket), config.KernelOptions{Words: 1})
	parent, child := accept(t, family)
	parent.Close() // makes the program exit
	if err := k.wait(t); err != nil {
		t.Error(err)
	}
	gone(t, child)
	nothingLeft(t)
}

func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, socket
}

// accept accepts a connection from the program and one from its child.
func accept(t *testing.T, l net.Listener) (parent, child net.Conn) {
	t.Helper()
	l.(*net.UnixListener).SetDeadline(time.Now().Add(time.Minute))
	for parent == nil || child == nil {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		var who [1]byte
		if _, err := io.ReadFull(conn, who[:]); err != nil {
			t.Fatal(err)
		}
		if who[0] == 'p' {
			parent = conn
		} else {
			child = conn
		}
	}
	return parent, child
}

// gone checks that the process at the other end of conn has exited.
func gone(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the process still holds its connection: %v", err)
	}
}

// nothingLeft checks that no goroutine of the kernel is running any longer.
func nothingLeft(t *testing.T) {
	t.Helper()
	buf := make([]byte, 1<<20)
	until(t, "the kernel's goroutines to end", func() bool {
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "standin.(*program)")
	})
}

// TestExecClosedOutput checks that a program that has closed its output cannot make further calls.
func TestExecClosedOutput(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k := c.runWithGrace(1, spec(t, "close", "stay"), 20*time.Millisecond)
	until(t, "a second start", func() bool { return k.Stats().Starts >= 2 })
	k.cancel(t)
	if f := k.failures(); f[0] != "program ended: signal: killed" {
		t.Errorf("failed with %q", f)
	}
	if k.logs.FilterMessage("program ignores SIGTERM, sending SIGKILL").Len() == 0 {
		t.Error("SIGKILL is not logged")
	}
}

// TestExecInputEnds checks that a program's input is closed to ask it to exit before any signal is sent.
func TestExecInputEnds(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k := c.runWithGrace(1, spec(t, "close", "wait"), time.Minute/2)
	if err := k.wait(t); err != nil || k.Stats().Starts != 1 {
		t.Errorf("ended with %v after %+v", err, k.Stats())
	}
}

// TestExecOutputHeldOpen checks that a process that is no longer in the program's group cannot block the kernel.
func TestExecOutputHeldOpen(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	family, socket := listen(t)
	k := c.runWithGrace(1, spec(t, "daemon", socket), 20*time.Millisecond)
	child, err := family.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close() // makes the child exit
	if err := k.wait(t); err != nil || k.Stats().Starts != 1 {
		t.Errorf("ended with %v after %+v", err, k.Stats())
	}
	nothingLeft(t)
}

func TestExecRankShutDown(t *testing.T) {
	c := newCluster(t, 2)
	k := c.run(1, spec(t, "echo"), config.KernelOptions{})
	c.send(1, words(1, 1), protocol.Int)
	c.recv(1, words(1, 1), protocol.Float)
	c.close()
	if err := k.wait(t); err == nil || !strings.Contains(err.Error(), mpe.ErrClosed.Error()) {
		t.Errorf("ended with %v", err)
	}
}

func TestExecProgramVanishes(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 2)
	defer c.close()
	k := c.prepare("exec:"+program, config.KernelOptions{Words: 1})
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	c.start(1, k)
	until(t, "two failures", func() bool { return len(k.failures()) == 2 })
	k.cancel(t)
	if f := k.failures(); !strings.Contains(f[0], "cannot start "+program) {
		t.Errorf("failed with %q", f)
	}
}
