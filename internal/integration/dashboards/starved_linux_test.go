package dashboards_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/daemon"
)

// starvedVariable is set in the process of the starved daemon.
const starvedVariable = "ZRLMPI_STARVED_DAEMON"

// startStarved starts a daemon in a separate process that lacks file descriptors, memory, and a writable log. It
// returns the daemon's target for Prometheus.
func startStarved(t *testing.T) (target string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestStarvedDaemon$", "-test.v")
	cmd.Env = append(os.Environ(), starvedVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for target == "" && lines.Scan() {
		target, _ = strings.CutPrefix(lines.Text(), "target ")
		if target == lines.Text() {
			t.Log(target)
			target = ""
		}
	}
	if target == "" {
		t.Fatal("the starved daemon does not start")
	}
	t.Cleanup(func() {
		stdin.Close() // ends the process
		io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return target
}

// TestStarvedDaemon is the process of the starved daemon. It ends with its input.
func TestStarvedDaemon(t *testing.T) {
	if os.Getenv(starvedVariable) == "" {
		t.Skip("this is the process of a daemon that TestLive starts")
	}
	unread, log, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	unread.Close() // every write to log fails
	defer log.Close()
	writer := daemon.NewLogWriter(log)
	defer writer.Close(time.Second)
	n := newNetwork(t)
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(writer),
		zap.WarnLevel)
	d := startDaemon(t, daemon.Options{Log: zap.New(core), LostLogLines: writer.Lost}, "",
		fmt.Sprintf("address: %q, run: host", n.address(0)), fmt.Sprintf("address: %q, run: host", n.address(1)))
	debug.SetMemoryLimit(residentMemory(t)) // most of the memory is not Go's

	// A stranger gives the daemon something to log.
	stranger := socket(t, n.address(20))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	go func() {
		for range tick.C {
			stranger.WriteToUDPAddrPort([]byte("not a packet"), n.address(0))
		}
	}()

	for range 200 {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = uint64(len(open)) * 10 / 9
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	fmt.Println("target " + d.target)
	io.Copy(io.Discard, os.Stdin)
}

// residentMemory returns the resident memory of this process in bytes.
func residentMemory(t *testing.T) (pages int64) {
	t.Helper()
	var size int64
	if _, err := fmt.Sscan(read(t, "/proc/self/statm"), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
