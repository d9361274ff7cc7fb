package hangs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// site runs a hang of three ranks on three hosts. Each host runs either a daemon, whose rank a program uses, or a
// program that is itself the rank.
type site struct {
	*hosts
	t       *testing.T
	hang    *hang
	folder  string
	more    [3]string // further settings of each host's configuration
	daemons [3]*process
	// ready contains the processes of programs that have reported that they are ready.
	mu    sync.Mutex
	ready map[int]*os.Process
	// gone marks hosts without a process that can be asked.
	gone [3]bool
}

// process is a process on a host.
type process struct {
	*exec.Cmd
	said bytes.Buffer
}

// binaries builds the programs that the hosts run, once: zrlmpid, zrlctl, the C library, and testdata/steps.c.
var binaries = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "hangs")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(folder) })
	for _, args := range [][]string{
		{"go", "build", "-trimpath", "-o", folder, "../../../cmd/zrlmpid", "../../../cmd/zrlctl"},
		{"../../../lib/build.sh", folder},
		{"cc", "-Wall", "-Werror", "-I", folder + "/include/standard", "-o", folder + "/steps", "testdata/steps.c",
			"-L", folder + "/lib",
			"-lmpi_abi", "-Wl,-rpath," + folder + "/lib"},
	} {
		build := exec.Command(args[0], args[1:]...)
		build.Env = append(os.Environ(), "FC=none") // no Fortran
		if args[0] == "go" {
			build.Env = append(build.Env, "CGO_ENABLED=0") // as make build
		}
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", args, err, out)
		}
	}
	return folder, nil
})

func builtBinaries(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building the C library takes a minute")
	}
	needs.Program(t, "hangs of C programs", "cc", "gcc")
	folder, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// newSite starts the hosts and the daemons of a hang.
func newSite(t *testing.T, h *hang) *site {
	t.Helper()
	s := &site{hosts: newHosts(t), t: t, hang: h, ready: map[int]*os.Process{}}
	var err error
	// t.TempDir is too long for a socket's path, and may contain a comma
	if s.folder, err = os.MkdirTemp("", "hang"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.folder) })
	if h.before != nil {
		h.before(s)
	}
	for host := range s.host {
		if err := os.Mkdir(s.path(host), 0o700); err != nil {
			t.Fatal(err)
		}
		s.writeConfig(host)
	}
	var starting sync.WaitGroup
	for host := range s.host {
		if !h.job && !s.gone[host] {
			starting.Go(func() { s.startDaemon(host) })
		}
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return s
}

// path returns the path of a host's folder, or of a file in it.
func (s *site) path(host int, name ...string) string {
	return filepath.Join(s.folder, fmt.Sprint("host", host), filepath.Join(name...))
}

// address returns the address of a host's rank.
func address(host int) string { return fmt.Sprintf("10.9.%d.%d", host, host+1) }

// writeConfig writes the configuration of a host, with the edits of the hang.
func (s *site) writeConfig(host int) {
	s.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: %q}\nhttp: {listen: \"\"}\n%sdefaults: {%s}\nranks:\n", s.path(host, "c.sock"),
		s.more[host],
		s.hang.defaults)
	for rank := range s.host {
		role, kernel := "run: host", s.hang.kernels[rank]
		switch {
		case kernel != "" && rank == host:
			role = "run: standin, kernel: " + kernel
		case kernel != "":
			role = "peer: fpga"
		case rank != host:
			role = "peer: software"
		}
		fmt.Fprintf(&b, "  - {rank: %d, address: %s, %s}\n", rank, address(rank), role)
	}
	text := strings.NewReplacer(s.hang.edits[host]...).Replace(b.String())
	if err := os.WriteFile(s.path(host, "z.yaml"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// command returns a command that runs on a host.
func (s *site) command(host int, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.path(host), "TMPDIR="+s.path(host),
		envSteps+"=1", fmt.Sprint(envHost, "=", host), envGo+"="+s.path(0, "go"), "ZRLMPI_ADDRESS=10.9.0.0/16")
	return c
}

// start starts a command on its host.
func (s *site) start(host int, c *exec.Cmd) *process {
	p := &process{Cmd: c}
	out, err := c.StdoutPipe()
	c.Stderr = &p.said
	if err == nil {
		s.host[host].Do(func() { err = c.Start() })
	}
	if err != nil {
		s.t.Error(err)
		return p
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.line(lines.Text())
		}
	}()
	s.t.Cleanup(func() {
		_ = c.Process.Kill()
		<-read
		_ = c.Wait()
		if s.t.Failed() {
			s.t.Logf("host %d, %s:\n%s", host, filepath.Base(c.Path), p.said.Bytes())
		}
	})
	return p
}

func (s *site) startDaemon(host int) {
	folder, err := binaries()
	if err != nil {
		s.t.Error(err)
		return
	}
	s.daemons[host] = s.start(host,
		s.command(host, filepath.Join(folder, "zrlmpid"), "-config", s.path(host, "z.yaml")))
	client := control.NewClient(s.path(host, "c.sock"))
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), causeTime)
	defer cancel()
	if _, err := client.WaitReady(ctx); err != nil {
		s.t.Errorf("host %d: %v", host, err)
	}
}

// line handles a line printed by a program, or by MPICH's launcher, which prints the command to start on each host.
func (s *site) line(text string) {
	var host, pid int
	if _, err := fmt.Sscanf(text, "ready %d %d", &host, &pid); err == nil {
		s.mu.Lock()
		s.ready[host], _ = os.FindProcess(pid)
		s.mu.Unlock()
	}
	if text, launch := strings.CutPrefix(text, "HYDRA_LAUNCH: "); launch {
		args := strings.Fields(text)
		host, err := strconv.Atoi(args[len(args)-1]) // of the proxy
		if err != nil {
			s.t.Errorf("%q: %v", text, err)
			return
		}
		s.start(host, s.command(host, args[0], args[1:]...))
	}
}

// program returns the command line of the program of a rank.
func (s *site) program(rank int) []string {
	folder, err := binaries()
	name := filepath.Join(folder, "steps")
	if err == nil && !s.hang.c {
		name, err = os.Executable()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return append([]string{name}, strings.Split(s.hang.programs[rank], ", ")...)
}

// startJob starts the programs as a job of MPICH's launcher. The ranks inherit the environment of their hosts.
func (s *site) startJob() {
	hydra := needs.Program(s.t, "jobs on several hosts", "mpiexec.hydra", "mpich")
	args := []string{"-launcher", "manual", "-hosts", address(0) + "," + address(1) + "," + address(2), "-localhost",
		address(0), "-genvnone"}
	for rank := range s.host {
		if rank > 0 {
			args = append(args, ":")
		}
		args = append(append(args, "-n", "1"), s.program(rank)...)
	}
	s.start(0, s.command(0, hydra, args...))
}

// startProgram starts a program that uses the rank of a daemon.
func (s *site) startProgram(rank int) {
	line := s.program(rank)
	c := s.command(rank, line[0], line[1:]...)
	c.Env = append(c.Env, "ZRLMPI_SOCKET="+s.path(rank, "c-attach.sock"))
	s.start(rank, c)
}

// run starts the programs, and disturbs them once all programs that report it are ready.
func (s *site) run() {
	if s.hang.job {
		s.startJob()
	}
	ready := 0
	for host, program := range s.hang.programs {
		if strings.Contains(program, "ready") {
			ready++
		}
		if program == "" || s.hang.job {
			continue
		}
		s.startProgram(host)
	}
	s.until("the programs to be ready", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.ready) == ready
	})
	if s.hang.disturb != nil {
		s.hang.disturb(s)
	}
	if err := os.WriteFile(s.path(0, "go"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for a condition that depends on other processes.
func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(causeTime); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			s.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// why asks for the diagnosis on a host. If all is set, the diagnosis includes all daemons.
func (s *site) why(host int, all bool) (*diagnosis.Diagnosis, error) {
	folder, err := binaries()
	if err != nil {
		return nil, err
	}
	args := []string{"why", "--json"}
	if !s.hang.job {
		args = append(args, "--socket", s.path(host, "c.sock"))
	}
	for other := range s.host {
		if all && other != host {
			args = append(args, "--daemons", s.path(other, "c.sock"))
		}
	}
	c := s.command(host, filepath.Join(folder, "zrlctl"), args...)
	c.Env = append(c.Env, "ZRLMPID_CONTROL_SOCKET=")
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	s.host[host].Do(func() { err = c.Start() })
	if err != nil {
		return nil, err
	}
	err = c.Wait()
	d := &diagnosis.Diagnosis{}
	if code := c.ProcessState.ExitCode(); code == 0 || code == 3 || code == 5 {
		err = json.Unmarshal(out.Bytes(), d)
	}
	if err == nil && d.After == 0 {
		err = fmt.Errorf("no diagnosis: %s", &out)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, &said)
	}
	return d, nil
}
