package daemon

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// manager is a service manager that records the notifications it receives and counts WATCHDOG=1.
type manager struct {
	t        *testing.T
	notified chan string
	alive    chan struct{}
	stopped  chan struct{}
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the path of t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{t: t, notified: make(chan string, 1000), alive: make(chan struct{}, 1000),
		stopped: make(chan struct{})}
	go func() {
		defer close(m.stopped)
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			if text := string(b[:n]); text == "WATCHDOG=1" {
				m.alive <- struct{}{}
			} else {
				m.notified <- text
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-m.stopped
		os.RemoveAll(dir)
	})
	t.Setenv("NOTIFY_SOCKET", path)
	return m
}

// wants checks that the next notification matches pattern.
func (m *manager) wants(pattern string) []string {
	m.t.Helper()
	select {
	case text := <-m.notified:
		match := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(text)
		if match == nil {
			m.t.Fatalf("the service manager is notified of %q, want %q", text, pattern)
		}
		return match
	case <-time.After(testTimeout):
		m.t.Fatalf("the service manager is not notified of %q", pattern)
	}
	return nil
}

func TestServiceManager(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "200000")
	c := newCluster(t)
	text := c.yaml("", echoes(2, "")...)
	r := start(t, text)
	const ready = "READY=1\nSTATUS=3 of 3 ranks are local: 0 \\(host\\) 1 \\(standin\\) 2 \\(standin\\)"
	m.wants(ready)
	for range 3 { // idle
		<-m.alive
	}
	r.ping(t, 1, 100, 10)
	r.mustReload(t, text)
	first := m.wants(`RELOADING=1\nMONOTONIC_USEC=(\d+)`)[1]
	m.wants(ready)
	if err := r.Reload(mustParse(t, text+"limits: {posted: 7}\n")); err == nil {
		t.Error("it is not refused")
	}
	second := m.wants(`RELOADING=1\nMONOTONIC_USEC=(\d+)`)[1]
	m.wants(ready)
	a, _ := strconv.ParseInt(first, 10, 64)
	if b, _ := strconv.ParseInt(second, 10, 64); a <= 0 || b < a {
		t.Errorf("the reloads were at %s and %s", first, second)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	m.wants(`STOPPING=1\nSTATUS=stopping, waiting for messages to complete\nEXTEND_TIMEOUT_USEC=5000000`)
	m.wants(`EXTEND_TIMEOUT_USEC=5000000`)
}

// TestWatchdog checks that the watchdog is not notified while an engine's lock is held, and is notified again
// after the lock has been released.
func TestWatchdog(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "100000")
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "peer: fpga"))
	<-m.alive
	// The packet path waits for this lock while it holds the engine's lock.
	r.observer.mu.Lock()
	at(t, c.addr(9), c.addr(0)).says(protocol.Ack, protocol.RecvInt, 0, nil)
	r.log.waitFor(t, "watchdog not notified, an engine does not respond")
	r.observer.mu.Unlock()
	for len(m.alive) > 0 { // discard earlier notifications
		<-m.alive
	}
	select {
	case <-m.alive:
	case <-time.After(testTimeout):
		t.Error("the watchdog is not notified again")
	}
}

// TestWithoutServiceManager checks that there are no notifications and no watchdog without a service manager.
func TestWithoutServiceManager(t *testing.T) {
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host"))
	if err := r.checkEngines(context.Background()); err != nil {
		t.Error(err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if log := r.log.String(); strings.Contains(log, "service manager") || strings.Contains(log, "watchdog") {
		t.Errorf("%s", log)
	}
}
