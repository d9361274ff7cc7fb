package path

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// device is the name of the TUN device in each namespace.
const device = "tun0"

// deviceQueue is how many packets the kernel keeps for a TUN device until they are read.
// A host may send the window of a connection at once.
const deviceQueue = 10_000

// namespace is a network namespace without a name, with a loopback and a TUN device. Its
// functions run one at a time on a thread that is in it, and so are the sockets and
// processes that they make.
type namespace struct {
	jobs chan func()
	// tun is the device, which this process does not read.
	tun *os.File
}

func newNamespace(own netip.Addr, c *Config) (*namespace, error) {
	n := &namespace{jobs: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ready <- fmt.Errorf("cannot create a network namespace: %w; run as root", err)
			return
		}
		ready <- n.configure(own, c)
		for job := range n.jobs {
			job()
		}
	}()
	if err := <-ready; err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// do runs f in the namespace, and waits for it.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// close ends the namespace when the processes in it have ended.
func (n *namespace) close() {
	close(n.jobs)
	n.tun.Close() // nil returns an error
}

// configure makes the devices. Without IPv6 the kernel sends nothing on its own.
func (n *namespace) configure(own netip.Addr, c *Config) error {
	settings := maps.Clone(c.Settings)
	if settings == nil {
		settings = make(map[string]string)
	}
	settings["net.ipv6.conf.all.disable_ipv6"], settings["net.ipv6.conf.default.disable_ipv6"] = "1", "1"
	for key, value := range settings {
		file := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
		if err := os.WriteFile(file, []byte(value), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot set %s to %q in a network namespace: %w", key, value, err)
		}
	}
	if err := n.openTUN(); err != nil {
		return err
	}
	congestion := ""
	if c.TCP != "" {
		congestion = "congctl " + c.TCP
	}
	network := netip.PrefixFrom(own, 24)
	ip := exec.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader(fmt.Sprintf(`link set lo up
link set %[1]s mtu %[2]d txqueuelen %[3]d up
addr add %[4]v dev %[1]s
route change %[5]v dev %[1]s scope link %[6]s
`, device, c.MTU, deviceQueue, network, network.Masked(), congestion))
	if out, err := ip.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot configure %s with the program ip of iproute2: %w: %s", device, err, bytes.TrimSpace(out))
	}
	return nil
}

// openTUN makes the TUN device. Its packets have no header of the driver, so the kernel
// segments and checksums them before they are read.
func (n *namespace) openTUN() error {
	const file = "/dev/net/tun"
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w; load the kernel module tun, and run as root", file, err)
	}
	n.tun = os.NewFile(uintptr(fd), file)
	r, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return fmt.Errorf("cannot create a TUN device: %w; run as root", err)
	}
	return nil
}

// drops returns how many packets the TUN device has dropped: those that were to be sent,
// because the emulator has not read them in time.
func (n *namespace) drops() (count int, err error) {
	n.do(func() { count, err = deviceDrops("/proc/thread-self/net/dev") })
	return count, err
}

// sentDrops is which number of a device in /proc/net/dev it is, from 0: those of
// reception are the first eight, then bytes, packets, errors and drops of sending.
const sentDrops = 8 + 3

func deviceDrops(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		name, numbers, _ := strings.Cut(string(line), ":")
		if fields := strings.Fields(numbers); strings.TrimSpace(name) == device && len(fields) > sentDrops {
			return strconv.Atoi(fields[sentDrops])
		}
	}
	return 0, fmt.Errorf("%s has no line of %s", file, device)
}
