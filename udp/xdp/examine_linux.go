package xdp

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Device describes a network device.
type Device struct {
	Name, Driver string
	// Queues is the number of receive queues.
	Queues int
}

// Examine returns the device that has an address, and the reason why Open or OpenUnlessFiltered would fail, if it finds
// one. It changes nothing and needs no rights, so that a lack of rights is not found.
func Examine(local netip.Addr) (Device, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return Device{}, fmt.Errorf("opening a netlink socket: %w", err)
	}
	defer handle.Close()
	index, err := deviceOf(handle, local)
	if err != nil {
		return Device{}, err
	}
	i, err := ethernetDevice(index)
	if err != nil {
		return Device{}, err
	}
	d := Device{Name: i.Name}
	d.Queues, _ = numQueues(i.Name)
	if d.Driver, err = driverName(i.Name); err != nil {
		return d, err
	}
	if l, err := handle.LinkByIndex(index); err == nil && l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached {
		return d, fmt.Errorf("%s is in use by %s: %w", i.Name, describeHolder(index), unix.EBUSY)
	}
	f, err := newFilter()
	if err == nil {
		f.close()
	}
	return d, err
}
