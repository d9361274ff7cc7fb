package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// deadEnds writes the configuration of a job with one process and the given number of FPGAs.
func deadEnds(t *testing.T, addr string, fpgas int) string {
	text := "defaults: {deadlines: {ack: 1s}}\nranks:\n"
	for rank := range fpgas + 1 {
		what := "peer: fpga"
		if rank == 0 {
			what = "run: host"
		}
		text += fmt.Sprintf("  - {rank: %d, address: %s%d, %s}\n", rank, addr, rank+1, what)
	}
	return writeFile(t, "job.yaml", text)
}

// lostContinuation drops the first datagram without a header.
func lostContinuation() func(b []byte) bool {
	lost := false
	return func(b []byte) bool {
		_, defect := protocol.CloudFPGA.Parse(b)
		if lost || defect.OK() {
			return false
		}
		lost = true
		return true
	}
}

// TestDeadEnds runs a C program that sends an FPGA 1000 words, of which one datagram is lost. All calls that wait for
// the FPGA must then return, with the original cause and an error class, and a job with fatal errors must end.
func TestDeadEnds(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "deadend.c")
	const first, later = "rank 1 did not acknowledge 1000 words",
		"rank 1 is in a dead end since an earlier operation failed: rank 1 did not acknowledge 1000 words"
	for how, want := range map[string][]string{
		"sendrecv":  {"sendrecv: other: ", first},
		"other":     {"sendrecv: other: ", first},
		"replace":   {"sendrecv: other: ", first},
		"isendrecv": {"wait: other: ", first},
		"waitall":   {"all: in status: ", later, "status: other: ", later, "status: other: ", first},
		"behind":    {"all: in status: ", first, "status: pending: ", "status: other: ", first, "cancelled: success"},
		"persistent": {"all: in status: ", first, "status: other: ", later, "status: other: ", first,
			"all: in status: ", later, "status: other: ", later, "status: other: ", later},
		"later":      {"send: other: ", first, "recv: other: ", later, "send: other: ", later, "probe: other: ", later},
		"any":        {"all: in status: ", later, "status: other: ", later, "status: other: ", first},
		"collective": {"bcast: other: ", first, "reduce: other: ", later},
	} {
		for _, handler := range []string{"return", "fatal"} {
			t.Run(how+"-"+handler, func(t *testing.T) {
				t.Parallel()
				addr, fpgas := loopback.Network(t), 1
				if how == "other" || how == "behind" || how == "isendrecv" {
					fpgas = 2
				}
				f := newFPGA(t, addr, 1, fpgas+1)
				f.loses = lostContinuation()
				var role sync.WaitGroup
				role.Go(func() { f.recv(1000) })
				out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "--config",
					deadEnds(t, addr, fpgas), program, how, handler)
				f.conn.Close()
				role.Wait()
				if handler == "fatal" {
					if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() == 0 ||
						!strings.Contains(out, first) {
						t.Errorf("%v\n%s", err, out)
					}
					return
				}
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				inOrder(t, out, want)
			})
		}
	}
}

// inOrder checks that a text contains some parts in this order.
func inOrder(t *testing.T, text string, parts []string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Errorf("there is no %q in the rest of\n%s", part, text)
			return
		}
		rest = after
	}
}

// TestResetInAJob checks that the command in the error makes an FPGA usable again after it was reset.
func TestResetInAJob(t *testing.T) {
	dir := builtLibrary(t)
	addr := loopback.Network(t)
	f := newFPGA(t, addr, 1, 2)
	f.loses = lostContinuation()
	var roles sync.WaitGroup
	roles.Go(func() { f.recv(1000) })
	zrlctl := filepath.Join(dir, "zrlctl")
	c := exec.CommandContext(t.Context(), zrlctl, "run", "--config", deadEnds(t, addr, 1),
		compile(t, dir, "standard", "deadend.c"), "reset", "return")
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"))
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	hangs := time.AfterFunc(jobTime, func() { _ = c.Process.Kill() })
	defer hangs.Stop()
	text := bufio.NewReader(out)
	var step []string
	for _, want := range []string{"send: other: ", "in a dead end"} {
		line, err := text.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Fatalf("%v: %s", err, line)
		}
		_, command, _ := strings.Cut(line, `run "zrlctl `)
		command, _, _ = strings.Cut(command, `"`)
		step = strings.Fields(command)
	}
	f.conn.Close() // the user resets the FPGA, whose role receives and sends
	roles.Wait()
	f = newFPGA(t, addr, 1, 2)
	defer f.conn.Close()
	roles.Go(func() { f.send(f.recv(1000), protocol.Int) })
	if len(step) != 4 || step[0] != "reset" {
		t.Fatalf("the error names the step %q", step)
	}
	step = append(step, "--job", fmt.Sprintf("zrlctl_%d", c.Process.Pid)) // other tests may also run jobs
	if text, err := exec.CommandContext(t.Context(), zrlctl, step...).CombinedOutput(); err != nil ||
		!strings.HasPrefix(string(text), "rank 1 is reset for ") {
		t.Errorf("zrlctl %v: %v\n%s", step, err, text)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(text)
	if err = errors.Join(err, c.Wait()); err != nil || string(rest) != "send: success\nrecv: success\n" {
		t.Errorf("%v\n%s", err, rest)
	}
	roles.Wait()
}
