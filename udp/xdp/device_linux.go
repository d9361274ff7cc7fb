package xdp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// device is a network device with the program attached. The ranks of this process share it.
type device struct {
	index   int
	name    string
	driver  string
	generic bool
	// localSenders is set if the driver is one of localDrivers.
	localSenders bool
	program      *program
	link         link.Link
	pools        []*pool // by receive queue
	// transmitQueues is the number of transmit queues. A socket on a queue beyond that number sends nothing.
	transmitQueues int
	// counters is the memory of program.passed, by slot. passedBefore contains the values when the slots were opened.
	counters     []byte
	passedBefore [maxSlots]uint64
	// slots is true for each slot in use.
	slots [maxSlots]bool
	users int
}

// localDrivers lists the drivers that deliver frames from senders on this host, or on the hypervisor's host. The UDP
// checksum of such a frame may cover only the pseudo header.
var localDrivers = []string{vethDriver, "virtio_net", "tun"}

// vethDriver is the driver of pairs of virtual devices.
const vethDriver = "veth"

// deviceKey identifies a device. Indexes are unique only within a network namespace.
type deviceKey struct {
	namespace uint64
	index     int
}

// devices holds the open devices of this process.
var devices = struct {
	sync.Mutex
	open map[deviceKey]*device
}{open: make(map[deviceKey]*device)}

// currentNamespace returns the inode of the calling thread's network namespace.
func currentNamespace() (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &s); err != nil {
		return 0, fmt.Errorf("determining the network namespace: %w", err)
	}
	return s.Ino, nil
}

// openDevice returns the device with the given index, and attaches the program on first use.
func openDevice(key deviceKey) (*device, error) {
	devices.Lock()
	defer devices.Unlock()
	d := devices.open[key]
	if d == nil {
		var err error
		if d, err = attach(key.index); err != nil {
			return nil, err
		}
		devices.open[key] = d
	}
	d.users++
	return d, nil
}

// release closes the device after its last use.
func (d *device) release(key deviceKey) {
	devices.Lock()
	defer devices.Unlock()
	if d.users--; d.users == 0 {
		delete(devices.open, key)
		d.close()
	}
}

// attach attaches the program to a device and opens a pool for each of its receive queues, with no socket yet. On
// failure it undoes its steps.
func attach(index int) (_ *device, err error) {
	i, err := ethernetDevice(index)
	if err != nil {
		return nil, err
	}
	d := &device{index: index, name: i.Name}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.driver, err = driverName(i.Name); err != nil {
		return nil, err
	}
	d.localSenders = slices.Contains(localDrivers, d.driver)
	if err := d.attachProgram(); err != nil {
		return nil, err
	}
	var queues int
	queues, d.transmitQueues = numQueues(i.Name)
	for queue := range queues {
		p, err := newPool(index, queue, poolFrames(queues), d.generic)
		if err != nil {
			return nil, fmt.Errorf("opening queue %d of %s: %w", queue, d.name, err)
		}
		d.pools = append(d.pools, p)
	}
	d.counters, err = unix.Mmap(d.program.passed.FD(), 0, 8*maxSlots, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return d, nil
}

// attachProgram attaches the program in the driver's mode if the driver has one, and otherwise in generic mode, before
// the kernel's network stack.
//
// On a veth device, the generic mode is faster, and does not disable segmentation offload for all traffic to the
// device. In generic mode, however, several datagrams may arrive as one frame that nothing distinguishes from a longer
// datagram: a piece that its sender's kernel has not segmented, or datagrams that this kernel has coalesced. Senders of
// this project therefore make no pieces that fit into a frame, this rank's socket coalesces no datagrams from network
// cards (Path.Coalescing), and a veth device that coalesces is used in the driver's mode.
func (d *device) attachProgram() (err error) {
	modes := []link.XDPAttachFlags{link.XDPDriverMode, link.XDPGenericMode}
	if d.driver == vethDriver && !hasGRO(d.name) {
		modes = modes[1:]
	}
	for _, mode := range modes {
		d.generic = mode == link.XDPGenericMode
		if d.program, err = newProgram(d.generic); err != nil {
			return err
		}
		d.link, err = link.AttachXDP(link.XDPOptions{Program: d.program.Program, Interface: d.index, Flags: mode})
		if !errors.Is(err, unix.EOPNOTSUPP) {
			break
		}
		d.program.close()
		d.program = nil
	}
	switch {
	case errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s is in use by %s: %w", d.name, describeHolder(d.index), unix.EBUSY)
	case err != nil:
		return fmt.Errorf("attaching the BPF program to %s (driver %s): %w", d.name, d.driver, err)
	}
	return nil
}

// ethernetDevice returns the device with the given index. It fails if it is not an Ethernet device.
func ethernetDevice(index int) (*net.Interface, error) {
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return nil, fmt.Errorf("finding device %d: %w", index, err)
	}
	if len(i.HardwareAddr) != macLen || i.Flags&net.FlagLoopback != 0 {
		return nil, fmt.Errorf("%s is not an Ethernet device", i.Name)
	}
	return i, nil
}

// driverName returns the name of a device's driver.
func driverName(device string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, device)
	if err != nil {
		return "", fmt.Errorf("asking for the driver of %s: %w", device, err)
	}
	return unix.ByteSliceToString(info.Driver[:]), nil
}

// hasGRO reports whether a device coalesces packets.
func hasGRO(device string) bool {
	on := ethtoolValue{command: unix.ETHTOOL_GGRO}
	return ethtool(device, unsafe.Pointer(&on)) != nil || on.value != 0
}

// ethtoolValue is the kernel's struct ethtool_value.
type ethtoolValue struct{ command, value uint32 }

// ethtool executes a command, a structure that begins with its number, for a device.
func ethtool(device string, command unsafe.Pointer) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	request := struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: command}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}

// ethtoolChannels is the kernel's struct ethtool_channels.
type ethtoolChannels struct {
	command, maxReceive, maxTransmit, maxOther, maxCombined, receive, transmit, other, combined uint32
}

// numQueues returns the numbers of receive and transmit queues of a device. Datagrams from receive queues beyond that
// number reach the kernel's socket.
func numQueues(device string) (receive, transmit int) {
	channels := ethtoolChannels{command: unix.ETHTOOL_GCHANNELS}
	if err := ethtool(device, unsafe.Pointer(&channels)); err != nil {
		return 1, 1 // drivers with a single queue do not implement it
	}
	limit := func(n uint32) int { return int(min(max(n, 1), maxQueues)) }
	return limit(channels.receive + channels.combined), limit(channels.transmit + channels.combined)
}

// open opens a socket on every queue for a local address, and redirects its datagrams there.
func (d *device) open(local netip.AddrPort) (slot int, sockets []*socket, err error) {
	devices.Lock()
	defer devices.Unlock()
	if slot = slices.Index(d.slots[:], false); slot < 0 {
		return 0, nil, fmt.Errorf("%s already serves %d addresses", d.name, maxSlots)
	}
	defer func() {
		if err != nil {
			closeSockets(sockets)
			sockets = nil
		}
	}()
	for queue, p := range d.pools {
		s, err := newSocket(p, d.index, queue)
		if err != nil {
			return 0, sockets, fmt.Errorf("opening a socket on queue %d of %s: %w", queue, d.name, err)
		}
		sockets = append(sockets, s)
		if err := d.program.set(slot, queue, s.fd); err != nil {
			return 0, sockets, fmt.Errorf("adding a socket to the BPF program: %w", err)
		}
	}
	d.passedBefore[slot] += d.passed(slot)
	if err := d.program.slots.Put(newSlotKey(local), uint32(slot)); err != nil {
		return 0, sockets, fmt.Errorf("adding %v to the BPF program: %w", local, err)
	}
	d.slots[slot] = true
	return slot, sockets, nil
}

// redirect makes the program redirect the datagrams of a local address, or leave them to the kernel.
func (d *device) redirect(slot int, local netip.AddrPort, on bool) error {
	if on {
		return d.program.slots.Put(newSlotKey(local), uint32(slot))
	}
	return d.program.slots.Delete(newSlotKey(local))
}

// closeSlot leaves the datagrams of a local address to the kernel again. It returns unread datagrams to the pools.
func (d *device) closeSlot(slot int, local netip.AddrPort, sockets []*socket) {
	devices.Lock()
	defer devices.Unlock()
	_ = d.program.slots.Delete(newSlotKey(local)) // fails only if it is not there
	for _, s := range sockets {
		var unread []uint64
		for s.receive.available() {
			unread = append(unread, s.receive.take().Addr)
		}
		s.pool.refill(unread)
	}
	closeSockets(sockets)
	d.slots[slot] = false
}

func closeSockets(sockets []*socket) {
	for _, s := range sockets {
		s.close()
	}
}

// passed returns the number of datagrams of a slot that the program did not redirect since the slot was opened.
func (d *device) passed(slot int) uint64 {
	return loadUint64(d.counters[8*slot:]) - d.passedBefore[slot]
}

// loadUint64 loads a word that the kernel changes.
func loadUint64(b []byte) uint64 { return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0]))) }

// close detaches the program before it closes the pools, so that all datagrams take the kernel's path again. It accepts
// a partly opened device.
func (d *device) close() {
	if d.link != nil {
		d.link.Close()
	}
	for _, p := range d.pools {
		p.close()
	}
	if d.counters != nil {
		_ = unix.Munmap(d.counters) // fails only for memory that is not mapped
	}
	if d.program != nil {
		d.program.close()
	}
}
