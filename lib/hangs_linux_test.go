package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/diagnosis"
)

// TestLibraryHangs: zrlctl why explains hangs of C programs.
func TestLibraryHangs(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "hangs.c")
	for _, tt := range []struct {
		mode  string
		ranks int
		// disturb is done to the process of rank 1 when all ranks run.
		disturb    func(t *testing.T, pid int)
		cause      string
		rank       int
		call       string
		text, step string
	}{
		{"cycle", 2, nil, diagnosis.Cycle, 0, "Recv", "cycle 0 → 1 → 0", "have one rank send first"},
		{"cycle", 3, nil, diagnosis.Cycle, 0, "Recv", "cycle 0 → 1 → 2 → 0", "have one rank send first"},
		{"sends", 5, nil, diagnosis.Cycle, 0, "Send", "cycle 0 → 1 → 2 → 3 → 4 → 0", "have one rank receive first"},
		{"tag", 3, nil, diagnosis.Tag, 1, "Recv", "rank 0 has sent with tag 7, and rank 1 receives with tag 5", "the same tag"},
		{"order", 3, nil, diagnosis.CallOrder, 1, "", "rank 1 has called Scan, and ranks 0 and 2 have called Allreduce", "the same order"},
		{"root", 3, nil, diagnosis.Root, 1, "Reduce", "rank 1 has called Reduce with root 1", "the same root"},
		{"fewer", 2, nil, diagnosis.Computes, 0, "Recv", "has not sent the message", "gdb -p"},
		{"credit", 2, nil, diagnosis.Credit, 1, "Send", "its program posts none", "does not receive"},
		{"computes", 3, nil, diagnosis.Computes, 1, "Allreduce", "has not called Allreduce", "gdb -p"},
		{"stopped", 3, func(t *testing.T, pid int) { signal(t, pid, unix.SIGSTOP) }, diagnosis.Stopped, 1, "Allreduce", "is stopped by a signal", "kill -CONT"},
	} {
		t.Run(fmt.Sprint(tt.mode, tt.ranks), func(t *testing.T) {
			job := startHang(t, dir, program, tt.mode, tt.ranks)
			pids := job.pids(t, tt.ranks)
			if tt.disturb != nil {
				tt.disturb(t, pids[1])
			}
			var code int
			var d diagnosis.Diagnosis
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
				code, d = job.why(t)
				if code == 5 && len(d.Findings) == 1 && d.Findings[0].Cause == tt.cause {
					break
				}
			}
			if code != 5 || len(d.Findings) != 1 {
				t.Fatalf("exit code %d, %+v", code, d)
			}
			f := &d.Findings[0]
			if f.Cause != tt.cause || f.Rank != tt.rank || tt.call != "" && f.Call != tt.call || !strings.Contains(f.Text, tt.text) || !strings.Contains(f.Step, tt.step) {
				t.Errorf("%+v", f)
			}
			t.Log(f.Text)
		})
	}
}

func signal(t *testing.T, pid int, s unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, s); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGCONT) })
}

// hang is a job that hangs.
type hang struct {
	zrlctl string
	name   string
	lines  *bufio.Scanner
}

func startHang(t *testing.T, dir, program, mode string, ranks int) *hang {
	t.Helper()
	h := &hang{zrlctl: filepath.Join(dir, "zrlctl")}
	args := []string{"run", "-n", fmt.Sprint(ranks)}
	if mode == "order" { // by shared memory this is an error of the calls
		args = []string{"run", "--config", overUDP(t, ranks)}
	}
	run := exec.Command(h.zrlctl, append(args, program, mode)...)
	run.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"))
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(unix.SIGTERM)
		_ = run.Wait() // it has failed
	})
	h.name, h.lines = fmt.Sprintf("zrlctl_%d", run.Process.Pid), bufio.NewScanner(out)
	return h
}

// overUDP writes a configuration of hosts that exchange datagrams.
func overUDP(t *testing.T, ranks int) string {
	t.Helper()
	text, net := "defaults: {profile: extended, transport: udp}\nranks:\n", loopbackNet()
	for rank := range ranks {
		text += fmt.Sprintf("  - {rank: %d, address: %s%d, run: host}\n", rank, net, rank+1)
	}
	return writeFile(t, "udp.yaml", text)
}

// pids returns the processes of the ranks, which have to have said that they run.
func (h *hang) pids(t *testing.T, ranks int) []int {
	t.Helper()
	pids := make([]int, ranks)
	for slices.Contains(pids, 0) && h.lines.Scan() {
		var rank, pid int
		if _, err := fmt.Sscan(h.lines.Text(), &rank, &pid); err != nil {
			t.Fatalf("%q: %v", h.lines.Text(), err)
		}
		pids[rank] = pid
	}
	if slices.Contains(pids, 0) {
		t.Fatalf("processes %v: %v", pids, h.lines.Err())
	}
	return pids
}

// why runs zrlctl why, and returns its exit code.
func (h *hang) why(t *testing.T) (code int, d diagnosis.Diagnosis) {
	t.Helper()
	c := exec.Command(h.zrlctl, "why", "--job", h.name, "--after", "100ms", "--json")
	text, err := c.Output()
	code = c.ProcessState.ExitCode()
	if code == 0 || code == 5 {
		err = json.Unmarshal(text, &d)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
	}
	return code, d
}
