package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// jobTime is the time limit of a launcher's job.
const jobTime = time.Minute

// helloProgram returns the program of examples/hello, and the output of a job's ranks.
func helloProgram(t *testing.T, ranks int) (program, want string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "hello")
	if out, err := exec.Command("go", "build", "-o", program, "../../examples/hello").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for rank := range ranks {
		want += fmt.Sprintf("rank %d of %d: rank %d sent %d\n", rank, ranks, rank^1, rank^1)
	}
	return program, want
}

func sortedLines(text []byte) string {
	lines := strings.SplitAfter(string(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestHydra runs a program as the ranks of a job of MPICH's mpiexec.
func TestHydra(t *testing.T) {
	hydra := needs.Program(t, "jobs of MPICH's launcher", "mpiexec.hydra", "mpich")
	program, want := helloProgram(t, 4)
	ctx, stop := context.WithTimeout(t.Context(), jobTime)
	defer stop()
	out, err := exec.CommandContext(ctx, hydra, "-n", "4", program).CombinedOutput()
	if err != nil || sortedLines(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestHydraOnHosts runs a job with ranks on three hosts. The partner of each rank is on another host.
func TestHydraOnHosts(t *testing.T) {
	hydra := needs.Program(t, "jobs on several hosts", "mpiexec.hydra", "mpich")
	program, want := helloProgram(t, 6)
	hosts := []netnstest.Host{newNetHost(t), newNetHost(t), newNetHost(t)}
	hosts[0].IP("link add bridge0 type bridge", "link set bridge0 up", "addr add 10.9.0.1/24 dev bridge0")
	names := []string{"10.9.0.1"}
	for i, h := range hosts[1:] {
		port, ip := fmt.Sprintf("port%d", i), fmt.Sprintf("10.9.0.%d", i+2)
		hosts[0].Join(port, h, "eth0")
		hosts[0].IP(fmt.Sprintf("link set %s master bridge0", port))
		h.IP(fmt.Sprintf("addr add %s/24 dev eth0", ip))
		names = append(names, ip)
	}
	ctx, stop := context.WithTimeout(t.Context(), jobTime)
	defer stop()
	// The launcher prints the command to start on each host.
	launcher := exec.CommandContext(ctx, hydra, "-launcher", "manual", "-hosts", strings.Join(names, ","), "-localhost",
		names[0],
		"-ppn", "1", "-n", "6", "-genv", "ZRLMPI_ADDRESS", "10.9.0.0/24", program)
	pipe, err := launcher.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	launcher.Stderr = &errs
	hosts[0].Do(func() { err = launcher.Start() })
	if err != nil {
		t.Fatal(err)
	}
	var proxies []*exec.Cmd
	var out []byte
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		text, launch := strings.CutPrefix(lines.Text(), "HYDRA_LAUNCH: ")
		switch {
		case launch:
			args := strings.Fields(text)
			proxy := exec.CommandContext(ctx, args[0], args[1:]...)
			hosts[len(proxies)].Do(func() { err = proxy.Start() })
			if err != nil {
				t.Fatal(err)
			}
			proxies = append(proxies, proxy)
		case lines.Text() != "HYDRA_LAUNCH_END":
			out = append(append(out, lines.Bytes()...), '\n')
		}
	}
	err = launcher.Wait()
	for _, p := range proxies {
		if failed := p.Wait(); failed != nil {
			t.Error(failed)
		}
	}
	if err != nil || sortedLines(out) != want || len(proxies) != len(hosts) {
		t.Errorf("%v, %d proxies\n%s\n%s", err, len(proxies), out, &errs)
	}
}
