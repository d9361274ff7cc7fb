package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestLibraryHangs checks that zrlctl why explains hangs of C programs.
func TestLibraryHangs(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "hangs.c")
	for _, tt := range []struct {
		mode  string
		ranks int
		// disturb is called with the process of rank 1 when all ranks are running.
		disturb    func(t *testing.T, pid int)
		cause      string
		rank       int
		call       string
		text, step string
	}{
		{"cycle", 2, nil, diagnosis.WaitCycle, 0, "Recv", "cycle 0 → 1 → 0", "have one rank send first"},
		{"cycle", 3, nil, diagnosis.WaitCycle, 0, "Recv", "cycle 0 → 1 → 2 → 0", "have one rank send first"},
		{"sends", 5, nil, diagnosis.WaitCycle, 0, "Send", "cycle 0 → 1 → 2 → 3 → 4 → 0",
			"have one rank receive first"},
		{"tag", 3, nil, diagnosis.TagMismatch, 1, "Recv", "rank 0 has sent with tag 7, and rank 1 receives with tag 5",
			"the same tag"},
		{"order", 3, nil, diagnosis.CallOrder, 1, "", "rank 1 has called Scan, and ranks 0 and 2 have called Allreduce",
			"the same order"},
		{"root", 3, nil, diagnosis.RootMismatch, 1, "Reduce", "rank 1 has called Reduce with root 1", "the same root"},
		{"fewer", 2, nil, diagnosis.ProgramComputes, 0, "Recv", "has not sent the message", "gdb -p"},
		{"short", 2, nil, diagnosis.ProgramComputes, 0, "Recv", "has not sent the message", "gdb -p"},
		{"credit", 2, nil, diagnosis.CreditExhausted, 1, "Send", "its program posts none", "does not receive"},
		{"computes", 3, nil, diagnosis.ProgramComputes, 1, "Allreduce", "has not called Allreduce", "gdb -p"},
		{"stopped", 3, func(t *testing.T, pid int) { signal(t, pid, unix.SIGSTOP) }, diagnosis.ProcessStopped, 1, "Allreduce",
			"is stopped by a signal", "kill -CONT"},
	} {
		t.Run(fmt.Sprint(tt.mode, tt.ranks), func(t *testing.T) {
			job := startHang(t, dir, program, tt.mode, tt.ranks)
			pids := job.pids(t, tt.ranks)
			if tt.disturb != nil {
				tt.disturb(t, pids[1])
			}
			job.explained(t, tt.cause, tt.rank, tt.call, tt.text, tt.step)
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
	zrlctl []string // of zrlctl why
	args   []string // of zrlctl why
	lines  *bufio.Scanner
	// complete reports whether a finding contains all waiting ranks. At first, some may have waited too
	// briefly. It may be nil.
	complete func(*diagnosis.Finding) bool
	// moreFindings is the number of findings that are permitted besides the expected one.
	moreFindings int
	said         string // errors of the last why that failed
}

func startHang(t *testing.T, dir, program, mode string, ranks int) *hang {
	t.Helper()
	h := &hang{zrlctl: []string{filepath.Join(dir, "zrlctl")}}
	args := []string{"run", "-n", fmt.Sprint(ranks)}
	if mode == "order" { // with shared memory, the calls return an error
		args = []string{"run", "--config", overUDP(t, ranks)}
	}
	run := exec.Command(h.zrlctl[0], append(args, program, mode)...)
	// mode "credit" reaches this limit quickly
	run.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"), "ZRLMPI_UNEXPECTED=10000")
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(unix.SIGTERM)
		_ = run.Wait() // the job has failed
	})
	h.args, h.lines = []string{"--job", fmt.Sprintf("zrlctl_%d", run.Process.Pid)}, bufio.NewScanner(out)
	return h
}

// overUDP writes a configuration of hosts that exchange datagrams.
func overUDP(t *testing.T, ranks int) string {
	t.Helper()
	return hostsOver(t, "udp", ranks, "")
}

// hostsOver writes a configuration of hosts with the given transport and additional top-level keys.
func hostsOver(t *testing.T, transport string, ranks int, more string) string {
	t.Helper()
	text, net := more+"defaults: {profile: extended, transport: "+transport+"}\nranks:\n", loopback.Network(t)
	for rank := range ranks {
		text += fmt.Sprintf("  - {rank: %d, address: %s%d, run: host}\n", rank, net, rank+1)
	}
	return writeFile(t, transport+".yaml", text)
}

// pids waits until all ranks have reported that they are running, and returns the IDs of their processes.
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

// explained waits until zrlctl why has one finding with the given cause, or if cause is "", one that h.complete
// accepts, and checks it.
func (h *hang) explained(t *testing.T, cause string, rank int, call, text, step string) *diagnosis.Finding {
	t.Helper()
	var code int
	var d diagnosis.Diagnosis
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	f := new(diagnosis.Finding)
	isComplete := func(found diagnosis.Finding) bool {
		*f = found
		return (cause == "" || found.Cause == cause) && (h.complete == nil || h.complete(f))
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		code, d = h.why(t)
		if code == 5 && len(d.Findings) <= 1+h.moreFindings && slices.ContainsFunc(d.Findings, isComplete) {
			break
		}
	}
	if code != 5 || len(d.Findings) > 1+h.moreFindings {
		t.Fatalf("exit code %d, %+v\n%s", code, d, h.said)
	}
	if cause != "" && f.Cause != cause || f.Rank != rank || call != "" && string(f.Call) != call ||
		!strings.Contains(f.Text, text) || !strings.Contains(f.Step, step) {
		t.Errorf("%+v", f)
	}
	t.Log(f.Text)
	return f
}

// why runs zrlctl why and returns its exit code.
func (h *hang) why(t *testing.T) (code int, d diagnosis.Diagnosis) {
	t.Helper()
	args := slices.Concat(h.zrlctl, []string{"why", "--after", "100ms", "--json"}, h.args)
	c := exec.Command(args[0], args[1:]...)
	text, failed := c.Output() // the exit code contains the result
	if e, ok := errors.AsType[*exec.ExitError](failed); ok {
		h.said = string(e.Stderr)
	}
	if code = c.ProcessState.ExitCode(); code == 0 || code == 5 {
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%v, %v in %q", failed, err, text)
		}
	}
	return code, d
}

// TestLibraryFailureRecord checks that a job that ends because a rank does not answer writes a record and prints its
// name. analyze reports the rank, and its trace contains the call.
func TestLibraryFailureRecord(t *testing.T) {
	dir, temp := builtLibrary(t), t.TempDir()
	program, zrlctl := compile(t, dir, "standard", "hangs.c"), filepath.Join(dir, "zrlctl")
	text := strings.Replace(readFile(t, overUDP(t, 2)), "transport: udp", "transport: udp, deadlines: {ack: 1s}", 1)
	run := exec.Command(zrlctl, "run", "--config", writeFile(t, "short.yaml", text), program, "late")
	run.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"), "TMPDIR="+temp)
	var said strings.Builder
	run.Stderr = &said
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := run.StdinPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pids := (&hang{lines: bufio.NewScanner(out)}).pids(t, 2)
	// If rank 1 were stopped after it acknowledged the message of rank 0, rank 0 would wait for it without a deadline.
	signal(t, pids[1], unix.SIGSTOP)
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err == nil {
		t.Fatal("the job has not failed")
	}
	_, file, _ := strings.Cut(said.String(),
		"zrlmpi: rank 0: packets before its connection to rank 1 failed: zrlctl analyze ")
	file, _, found := strings.Cut(file, "\n")
	if list, err := filepath.Glob(filepath.Join(temp, fmt.Sprintf("zrlmpi-records-%d", os.Geteuid()),
		"*")); err != nil || !found || !slices.Equal(list, []string{file}) {
		t.Fatalf("%q, %v\n%s", list, err, said.String())
	}
	trace := filepath.Join(temp, "trace")
	analysis, err := exec.Command(zrlctl, "analyze", file, "--perfetto", trace).CombinedOutput()
	if !strings.Contains(string(analysis), "retransmitted_packet") ||
		!strings.Contains(readFile(t, trace), "Allreduce, 4 bytes, communicator 1") {
		t.Errorf("%v\n%s", err, analysis)
	}
	t.Logf("%s%s", said.String(), analysis)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLibraryHangsOfHosts checks that a hang of C programs on three hosts, each in a network namespace, is explained on
// each of them.
func TestLibraryHangsOfHosts(t *testing.T) {
	needs.Root(t, "hangs of C programs on several hosts", "can create network namespaces")
	needs.Program(t, "hangs of C programs on several hosts", "ip", "iproute2")
	needs.Program(t, "hangs of C programs on several hosts", "nsenter", "util-linux")
	needs.Program(t, "hangs of C programs on several hosts", "mpiexec.hydra", "mpich")
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "hangs.c")
	type expected struct {
		cause      string
		peer       int
		call       string
		text, step string // parts; %[1]d is the process of rank 1
	}
	tag := expected{diagnosis.TagMismatch, 0, "Recv", "rank 0 has sent with tag 7, and rank 1 receives with tag 5",
		"use the same tag in the send of rank 0 and the receive of rank 1"}
	computes := expected{diagnosis.ProgramComputes, 0, "Allreduce", "has not called Allreduce",
		"look what process %[1]d on 10.9.0.2 does, which is rank 1: top -p %[1]d, gdb -p %[1]d"}
	// A stopped process does not answer. The other hosts report this, and the host where the tool must look. If the
	// process was stopped before it acknowledged a packet, it is also silent.
	unknown := expected{diagnosis.StateUnknown, 0, "Allreduce", "it has not answered the question for a report",
		"run zrlctl why on 10.9.0.2, where its process can be seen"}
	silent := expected{diagnosis.PeerSilent, 0, "Allreduce", "does not answer any more; ",
		"on the host of rank 1: check that its process runs"}
	stopped := expected{diagnosis.ProcessStopped, diagnosis.AnyRank, "", "process %[1]d, which is rank 1, is stopped",
		"continue process %[1]d on this host: kill -CONT %[1]d"}
	for _, tt := range []struct {
		mode  string
		stops bool        // rank 1
		from  [3]expected // by host
	}{
		{"tag", false, [3]expected{tag, tag, tag}},
		{"computes", false, [3]expected{computes, computes, computes}},
		{"stopped", true, [3]expected{unknown, stopped, unknown}},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			script, lines := background(t,
				[]string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib"), "ZRLCTL=" + filepath.Join(dir, "zrlctl")},
				"./namespaces.sh", "hosts", "3", program, tt.mode)
			pid := (&hang{lines: lines}).pids(t, 3)[1]
			inside := []string{"nsenter", "--target", fmt.Sprint(child(t, child(t, script.Process.Pid))), "--mount",
				"--pid", "--net"}
			if tt.stops {
				if out, err := exec.Command(inside[0],
					append(inside[1:], "kill", "-STOP", fmt.Sprint(pid))...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			with := func(text string) string {
				if strings.Contains(text, "%") {
					return fmt.Sprintf(text, pid)
				}
				return text
			}
			// All hosts run why simultaneously, because a stopped rank is declared unreachable after 10 s, which ends
			// the job.
			t.Run("from", func(t *testing.T) {
				for i, want := range tt.from {
					host := fmt.Sprint("host", i+1)
					t.Run(host, func(t *testing.T) {
						t.Parallel()
						h := &hang{zrlctl: append(slices.Clone(inside), "ip", "netns", "exec", host,
							filepath.Join(dir, "zrlctl"))}
						if tt.stops { // ranks 0 and 2 may both wait for it, and only one of them has questioned it
							h.moreFindings = 1
						}
						h.complete = func(f *diagnosis.Finding) bool {
							if want == unknown && f.Cause == silent.cause && f.Peer == silent.peer {
								want = silent
							}
							return f.Peer == want.peer && f.Cause == want.cause
						}
						f := h.explained(t, "", 1, want.call, "", "")
						if !h.complete(f) || !strings.Contains(f.Text, with(want.text)) ||
							!strings.Contains(f.Step, with(want.step)) {
							t.Errorf("%+v", f)
						}
					})
				}
			})
		})
	}
}

// child returns the only child of a process.
func child(t *testing.T, pid int) (child int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	if err == nil {
		_, err = fmt.Sscan(string(text), &child)
	}
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// startDaemon starts a daemon whose configuration is text, with the control socket at the given path, and waits until
// it is ready.
func startDaemon(t *testing.T, dir, text, socket string) {
	t.Helper()
	daemon := filepath.Join(dir, "zrlmpid")
	if out, err := exec.Command("go", "build", "-o", daemon, "../cmd/zrlmpid").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	background(t, nil, daemon, "-config", writeFile(t, "z.yaml", text))
	if out, err := exec.Command(filepath.Join(dir, "zrlctl"), "status", "--wait", "20s", "--socket",
		socket).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestLibraryHangsAttached checks that a cycle of programs that are attached to a daemon is certain: the programs list
// the operations that they await.
func TestLibraryHangsAttached(t *testing.T) {
	dir, folder := builtLibrary(t), t.TempDir()
	program, net := compile(t, dir, "standard", "hangs.c"), loopback.Network(t)
	startDaemon(t, dir, fmt.Sprintf("control: {socket: %s/c.sock}\ndefaults: {profile: extended, transport: udp}\n"+
		"ranks:\n  - {rank: 0, address: %s1, run: host}\n  - {rank: 1, address: %s2, run: host}\n", folder, net, net),
		folder+"/c.sock")
	for range 2 {
		background(t, []string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib"),
			"ZRLMPI_SOCKET=" + folder + "/c-attach.sock"}, program, "cycle")
	}
	h := &hang{zrlctl: []string{filepath.Join(dir, "zrlctl")}, args: []string{"--socket", folder + "/c.sock"},
		complete: func(f *diagnosis.Finding) bool { return f.Certain }}
	h.explained(t, diagnosis.WaitCycle, 0, "Recv", "cycle 0 → 1 → 0", "have one rank send first")
}

// TestLibraryHangsKilled runs programs with two daemons, as on two hosts. One program is killed, or was not started.
// The other host's daemon must report the cause over HTTP.
func TestLibraryHangsKilled(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "hangs.c")
	net := loopback.Network(t)
	folders := []string{t.TempDir(), t.TempDir()}
	for rank, folder := range folders {
		text := fmt.Sprintf("control: {socket: %s/c.sock}\nhttp: {listen: \"%s%d:9627\"}\ndefaults: {profile: "+
			"extended, transport: udp}\nranks:\n", folder, net, rank+1)
		for other := range folders {
			role := "peer: software"
			if other == rank {
				role = "run: host"
			}
			text += fmt.Sprintf("  - {rank: %d, address: %s%d, %s}\n", other, net, other+1, role)
		}
		startDaemon(t, dir, text, folder+"/c.sock")
	}
	h := &hang{zrlctl: []string{filepath.Join(dir, "zrlctl")},
		args: []string{"--socket", folders[0] + "/c.sock", "--daemons", fmt.Sprintf("http://%s2:9627", net)}}
	start := func(rank int) (*exec.Cmd, *bufio.Scanner) {
		return background(t, []string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib"),
			fmt.Sprintf("ZRLMPI_SOCKET=%s/c-attach.sock", folders[rank])}, program, "computes")
	}
	_, lines := start(0)
	h.lines = lines
	h.explained(t, diagnosis.NotAttached, 1, "", "no program uses rank 1", "start the program of rank 1")
	late, lines := start(1)
	for _, l := range []*bufio.Scanner{h.lines, lines} {
		if !l.Scan() {
			t.Fatalf("a program ended: %v", l.Err())
		}
	}
	h.explained(t, diagnosis.ProgramComputes, 1, "Allreduce", "has not called Allreduce",
		fmt.Sprint("gdb -p ", late.Process.Pid))
	signal(t, late.Process.Pid, unix.SIGSTOP)
	h.explained(t, diagnosis.ProcessStopped, 1, "Allreduce", "is stopped by a signal",
		fmt.Sprint("kill -CONT ", late.Process.Pid))
	signal(t, late.Process.Pid, unix.SIGKILL)
	h.explained(t, diagnosis.ProcessEnded, 1, "Allreduce", "the program of rank 1 has exited", "start all ranks again")
}

// background starts a program that is stopped at the end of the test, and returns its output.
func background(t *testing.T, env []string, name string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c, bufio.NewScanner(out)
}
