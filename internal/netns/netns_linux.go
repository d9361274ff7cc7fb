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
	"sync/atomic"
	"unsafe"

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

// SetFeature changes a feature of a device in the namespace, as the program ethtool does. The command is a number such
// as ETHTOOL_SGRO.
func (n *Namespace) SetFeature(device string, command, value uint32) error {
	var err error
	n.Do(func() {
		var fd int
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		argument := [2]uint32{command, value} // struct ethtool_value
		request := struct {                   // struct ifreq
			name [unix.IFNAMSIZ]byte
			data *[2]uint32
			_    [16]byte
		}{data: &argument}
		copy(request.name[:unix.IFNAMSIZ-1], device)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
		if errno != 0 {
			err = errno
		}
	})
	if err != nil {
		return fmt.Errorf("cannot execute ethtool command %#x for %s: %w", command, device, err)
	}
	return nil
}

// Join joins two namespaces by a pair of virtual Ethernet devices, and brings both devices up. A device is its name,
// followed by options of `ip link add`, such as "eth0 mtu 9000".
func Join(a, b *Namespace, deviceA, deviceB string) error {
	nameA, _, _ := strings.Cut(deviceA, " ")
	nameB, _, _ := strings.Cut(deviceB, " ")
	// If both devices had the same index, the kernel would take up to a second to notice that the link is up.
	index := firstIndex + indexes.Add(1)
	err := a.RunIP(fmt.Sprintf("link add %s type veth peer name %s index %d netns %s", deviceA, deviceB, index, b.Name()),
		"link set "+nameA+" up")
	if err != nil {
		return err
	}
	return b.RunIP("link set " + nameB + " up")
}

// firstIndex is greater than the indexes that the kernel assigns. indexes is the number that Join has used.
const firstIndex = 10_000

var indexes atomic.Int32

// Pair is two hosts, namespaces joined by their devices eth0. Their addresses are 10.9.0.1/24 and 10.9.0.2/24.
type Pair [2]*Namespace

// NewPair makes a pair. The options apply to its devices, as in Join.
func NewPair(options [2]string) (_ *Pair, err error) {
	p := &Pair{}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	for i := range p {
		if p[i], err = New(); err != nil {
			return nil, err
		}
	}
	if err = Join(p[0], p[1], "eth0 "+options[0], "eth0 "+options[1]); err != nil {
		return nil, err
	}
	for i, n := range p {
		if err = n.RunIP("link set lo up", fmt.Sprintf("addr add 10.9.0.%d/24 dev eth0", i+1)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Close closes the namespaces.
func (p *Pair) Close() {
	for _, n := range p {
		if n != nil {
			n.Close()
		}
	}
}
