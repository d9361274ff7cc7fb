// Package netns makes unnamed network namespaces, for tools and tests that need separate hosts. They end with the
// process, even if it is killed. It needs root.
//
// It must never change the namespace of the process, or of a goroutine of its callers.
package netns

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace. Do runs functions one at a time on a thread in the namespace. Sockets and processes
// that they create belong to it.
type Namespace struct {
	jobs   chan func()
	thread int
}

// New makes a namespace whose only interface is a loopback, which is down.
func New() (*Namespace, error) {
	namespace := &Namespace{jobs: make(chan func())}
	ready := make(chan error, 1)
	go onThread(func() {
		namespace.thread = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if ready <- err; err != nil {
			return
		}
		for job := range namespace.jobs {
			job()
		}
	})
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("cannot create a network namespace: %w; run as root", err)
	}
	return namespace, nil
}

// onThread runs f on a thread that exits afterwards. It avoids the main thread, because /proc/PID/net shows that
// thread's namespace as the namespace of the process.
func onThread(f func()) {
	runtime.LockOSThread() // never unlocked, except on the first thread
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		onThread(f)
	}()
	<-ended
	runtime.UnlockOSThread()
}

// Do runs f in the namespace and waits for it.
func (n *Namespace) Do(f func()) {
	done := make(chan struct{})
	n.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Close closes the namespace. The kernel removes it when its last socket and process are gone.
func (n *Namespace) Close() { close(n.jobs) }

// Name returns a name of the namespace that the program ip accepts: the ID of a thread in the namespace.
func (n *Namespace) Name() string { return strconv.Itoa(n.thread) }

// RunIP runs commands in the namespace. They are commands of the program ip from the package iproute2.
func (n *Namespace) RunIP(lines ...string) (err error) {
	n.Do(func() {
		ip := exec.Command("ip", "-batch", "-")
		ip.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		if out, failed := ip.CombinedOutput(); failed != nil {
			err = fmt.Errorf("the program ip of iproute2: %w: %s", failed, bytes.TrimSpace(out))
		}
	})
	return err
}

// Set changes a kernel setting in the namespace. The setting is given by its sysctl name.
func (n *Namespace) Set(key, value string) (err error) {
	n.Do(func() {
		err = os.WriteFile("/proc/sys/"+strings.ReplaceAll(key, ".", "/"), []byte(value), 0)
	})
	if err != nil {
		return fmt.Errorf("cannot set %s to %q in a network namespace: %w", key, value, err)
	}
	return nil
}
