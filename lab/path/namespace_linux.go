package path

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/netns"
)

// device is the name that the TUN device has in both namespaces.
const device = "tun0"

// deviceQueue is the number of packets that the kernel may queue for a TUN device. A host may send the whole window of
// a connection at once.
const deviceQueue = 10_000

// namespace is a network namespace with a loopback device and a TUN device.
type namespace struct {
	*netns.Namespace
	// tun is the TUN device. Only the emulator's process reads from it.
	tun *os.File
}

func newNamespace(own netip.Addr, config *Config) (*namespace, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	n := &namespace{Namespace: ns}
	if err := n.configure(own, config); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// close releases the namespace, which disappears when the processes in it have exited.
func (n *namespace) close() {
	n.Close()
	n.tun.Close() // a nil file returns an error
}

// configure creates the devices. It disables IPv6 so that the kernel sends no packets by itself.
func (n *namespace) configure(own netip.Addr, config *Config) error {
	settings := maps.Clone(config.Settings)
	if settings == nil {
		settings = make(map[string]string)
	}
	settings["net.ipv6.conf.all.disable_ipv6"], settings["net.ipv6.conf.default.disable_ipv6"] = "1", "1"
	for key, value := range settings {
		if err := n.Set(key, value); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	var err error
	if n.Do(func() { err = n.openTUN() }); err != nil {
		return err
	}
	congestion := ""
	if config.TCP != "" {
		congestion = "congctl " + config.TCP
	}
	network := netip.PrefixFrom(own, 24)
	err = n.RunIP("link set lo up",
		fmt.Sprintf("link set %s mtu %d txqueuelen %d up", device, config.MTU, deviceQueue),
		fmt.Sprintf("addr add %v dev %s", network, device),
		fmt.Sprintf("route change %v dev %s scope link %s", network.Masked(), device, congestion))
	if err != nil {
		return fmt.Errorf("cannot configure %s: %w", device, err)
	}
	return nil
}

// openTUN creates the TUN device. Its packets are read without a driver header, so the kernel segments them and
// computes checksums first.
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

// droppedPackets returns the number of outgoing packets that the TUN device dropped because the emulator did not read
// them in time.
func (n *namespace) droppedPackets() (count int, err error) {
	n.Do(func() { count, err = deviceDrops("/proc/thread-self/net/dev") })
	return count, err
}

// sentDrops is the index of the column in /proc/net/dev that counts dropped outgoing packets, counted from 0 after the
// device's name. It follows eight receive counters, and the numbers of transmitted bytes, packets and errors.
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
