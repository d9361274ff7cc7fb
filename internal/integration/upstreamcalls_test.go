package integration_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// buildCalls builds testdata/calls.cpp with upstream's library, such that the program exits when it writes outside of a
// buffer.
func buildCalls(t *testing.T) string {
	t.Helper()
	checkout := os.Getenv(sourceEnv)
	if checkout == "" {
		t.Skipf("NOT TESTED against upstream's CPU library: set %s to a checkout of github.com/cloudFPGA/ZRLMPI",
			sourceEnv)
	}
	path := filepath.Join(t.TempDir(), "calls")
	library := filepath.Join(checkout, "LIB/SW")
	cmd := exec.CommandContext(t.Context(), "g++", "-std=c++11", "-g", "-w", "-pthread", "-fsanitize=address",
		// MPI_Init uses the memory of a string after its destruction.
		"-fno-sanitize-address-use-after-scope",
		"-I", library, "-o", path, "testdata/calls.cpp",
		filepath.Join(library, "ZRLMPI.cpp"), filepath.Join(library, "zrlmpi_common.cpp"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return path
}

// callsProgram is a running testdata/calls.cpp.
type callsProgram struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// returned receives the lines that the program prints when calls return. It is closed when the program exits; err
	// is then the exit error.
	returned chan string
	err      error
	stderr   bytes.Buffer
}

// startCalls starts the program as a rank of the cluster with the given addresses, and waits until it has opened its
// socket.
func startCalls(t *testing.T, path string, rank int, ips []string) *callsProgram {
	t.Helper()
	args := []string{"udp", ips[rank], strconv.Itoa(len(ips)), strconv.Itoa(rank)}
	for r, ip := range ips {
		if r != rank {
			args = append(args, ip)
		}
	}
	p := &callsProgram{cmd: exec.Command(path, args...), returned: make(chan string, 16)}
	p.cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0")
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(stdout)
	if line, ok := <-p.returned; line != "ready" {
		p.kill()
		t.Fatalf("%s: got %q, %v, instead of \"ready\"\n%s", p.cmd, line, ok, p.stderr.String())
	}
	return p
}

func (p *callsProgram) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch verb, _, _ := strings.Cut(lines.Text(), " "); verb {
		case "ready", "received", "sent", "no":
			p.returned <- lines.Text()
		}
	}
	p.err = p.cmd.Wait()
	close(p.returned)
}

// kill kills the program and waits for it to exit.
func (p *callsProgram) kill() {
	_ = p.cmd.Process.Kill()
	for range p.returned {
	}
}

// recv starts a receive. The program prints receivedLine when it returns.
func (p *callsProgram) recv(source, words int) {
	fmt.Fprintf(p.stdin, "recv %d %d\n", source, words)
}

// send starts a send. The program prints "sent" when it returns.
func (p *callsProgram) send(destination int, words []uint32) {
	fmt.Fprintf(p.stdin, "send %d %s\n", destination, hexWords(words))
}

func receivedLine(words []uint32) string { return "received " + hexWords(words) }

func hexWords(words []uint32) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "%08x", w)
	}
	return b.String()
}

// overran reports whether the program exited because it wrote outside of a buffer. returned must be closed.
func (p *callsProgram) overran() bool {
	return p.err != nil && strings.Contains(p.stderr.String(), "AddressSanitizer")
}
