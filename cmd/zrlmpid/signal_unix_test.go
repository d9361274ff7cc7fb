//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// build builds zrlmpid and returns the path of the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "zrlmpid")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// process is a running zrlmpid.
type process struct {
	*exec.Cmd
	t   *testing.T
	log *bufio.Scanner
}

// runProgram builds and starts the program, and waits until it is ready.
func runProgram(t *testing.T, args ...string) *process {
	t.Helper()
	return runCommand(t, build(t), args...)
}

// runCommand starts a command that runs the program, and waits until the program is ready.
func runCommand(t *testing.T, program string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	p := &process{exec.CommandContext(ctx, program, args...), t, nil}
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.log = bufio.NewScanner(stderr)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = p.Wait() // a second call fails
	})
	p.says("zrlmpid ready")
	return p
}

// says waits for a line of the log that contains text, and returns the line.
func (p *process) says(text string) string {
	p.t.Helper()
	var all bytes.Buffer
	for p.log.Scan() {
		if strings.Contains(p.log.Text(), text) {
			return p.log.Text()
		}
		all.WriteString(p.log.Text() + "\n")
	}
	p.t.Fatalf("the log never says %q:\n%s", text, &all)
	return ""
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// TestHangupRereads: on SIGHUP, the daemon reads the file again and applies the original flags. A file that is invalid,
// or whose changes need a restart, changes nothing.
func TestHangupRereads(t *testing.T) {
	text, addr, socket := testConfig(t)
	path := file(t, "z.yaml", text)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := runProgram(t, "-config", path, "-log-level", "info")
	hangup := func(text, want string) {
		t.Helper()
		write(text)
		p.signal(syscall.SIGHUP)
		if line := p.says("configuration re"); !strings.Contains(line, want) {
			t.Errorf("the log says %q, want %q", line, want)
		}
	}
	hangup("stop_timeout: 5s\nlog: {level: error}\n"+text, `"stop_timeout: 2s -> 5s"]`) // the flag takes precedence
	hangup("stop_timeot: 5s\n"+text, `unknown key`)
	hangup(strings.Replace(text, addr, "127.0.0.1:9", 1), "rank 1: address: "+addr+" -> 127.0.0.1:9")
	client := control.NewClient(socket)
	defer client.Close()
	write(text)
	r, err := client.Reload(t.Context())
	if err != nil || len(r.Changes) != 1 || r.Changes[0].Text != "stop_timeout: 5s -> 2s" || r.Config != path {
		t.Errorf("%+v, %v", r, err)
	}
	p.signal(syscall.SIGTERM)
	p.says("stopping")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSecondSignal: after the first signal, messages in progress may complete. The second signal ends the process
// immediately.
func TestSecondSignal(t *testing.T) {
	text, addr, _ := testConfig(t)
	text = strings.Replace("stop_timeout: 1h\n"+text, "run: standin", "peer: fpga", 1)
	own := strings.Split(strings.Split(text, "rank: 0, address: \"")[1], "\"")[0]
	p := runProgram(t, "-config", file(t, "z.yaml", text))
	laddr, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	raddr, err := net.ResolveUDPAddr("udp", own)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUDP("udp", laddr, raddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	client := control.NewClient(strings.Split(strings.Split(text, "socket: \"")[1], "\"")[0])
	defer client.Close()
	go func() { // it always fails
		_, _ = client.Send(t.Context(), control.SendRequest{From: 0, To: 1, Timeout: testTimeout},
			strings.NewReader("1234"))
	}()
	reads := func(want protocol.Type) { // skips retransmissions of packets of other types
		b := make([]byte, 100)
		for {
			n, err := conn.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			if h, defect := protocol.CloudFPGA.Parse(b[:n]); defect.OK() && h.Type == want {
				return
			}
		}
	}
	reads(protocol.SendRequest)
	clear := protocol.Header{Src: 1, Type: protocol.ClearToSend, Call: protocol.RecvInt}
	if _, err := conn.Write(protocol.CloudFPGA.Append(nil, clear)); err != nil {
		t.Fatal(err)
	}
	reads(protocol.Data)
	p.signal(syscall.SIGTERM)
	p.says("message pending at stop")
	// The log line may appear before a second signal would end the process, so send the signal repeatedly.
	ended := make(chan struct{})
	var again sync.WaitGroup
	again.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			_ = p.Process.Signal(syscall.SIGTERM) // fails after the end
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	})
	err = p.Wait()
	close(ended)
	again.Wait()
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() ||
		status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v", err)
	}
}
