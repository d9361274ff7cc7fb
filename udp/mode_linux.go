package udp

import (
	"encoding/binary"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The treatment of datagrams that are too long is a property of a socket. The rank's only socket carries all profiles,
// so the option is set when the mode changes from one datagram to the next. A rank whose peers all have the same
// profile sets it once.

// Lengths of the headers before the payload of a datagram, in bytes.
const (
	headersIPv4 = 20 + 8
	headersIPv6 = 40 + 8
)

// leastMTU is the minimum MTU of IPv6, and so the length of fragments that every path carries: routers do not fragment.
const leastMTU = 1280

// modeOptions are the socket options for modes.
type modeOptions struct {
	level, discover, mtu int
	fragments            bool // the length of fragments can be set
	headers              int
}

func (s *sockaddr) modeOptions() modeOptions {
	if binary.NativeEndian.Uint16(s.raw[0:]) == unix.AF_INET6 {
		return modeOptions{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_MTU, true, headersIPv6}
	}
	return modeOptions{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_MTU, false, headersIPv4}
}

// discover is the kernel's option for each mode. With PROBE, the kernel forbids fragmentation to routers, rejects
// datagrams that are too long for the interface, and ignores reports about the rest of the path.
var discover = [...]int{sendWhole: unix.IP_PMTUDISC_PROBE, sendFragments: unix.IP_PMTUDISC_DONT}

func (o *modeOptions) set(fd int, m sendMode, byDefault int) (err error) {
	value := byDefault
	if m != sendDefault {
		value = discover[m]
	}
	if o.fragments {
		length := 0 // as known for the path
		if m == sendFragments {
			length = leastMTU
		}
		err = unix.SetsockoptInt(fd, o.level, o.mtu, length)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, o.level, o.discover, value)
	}
	return os.NewSyscallError("setsockopt", err)
}

// hasModes tries all modes, the default last, and returns the system's default option.
func (o *modeOptions) hasModes(raw syscall.RawConn) (byDefault int, ok bool) {
	var err error
	ctl := raw.Control(func(fd uintptr) {
		byDefault, err = unix.GetsockoptInt(int(fd), o.level, o.discover)
		for _, m := range []sendMode{sendFragments, sendWhole, sendDefault} {
			if err == nil {
				err = o.set(int(fd), m, byDefault)
			}
		}
	})
	return byDefault, ctl == nil && err == nil
}

// setMode is called by one goroutine at a time, as send is.
func (s *mmsgSocket) setMode(m sendMode) error {
	s.descriptor.out.Lock()
	defer s.descriptor.out.Unlock()
	if s.closed.Load() {
		return net.ErrClosed
	}
	if err := s.options.set(s.fd, m, s.byDefault); err != nil {
		return err
	}
	s.mode = m
	return nil
}

// route is a socket that is connected to a peer to find the MTU of the path. It is opened together with the rank's
// socket, and so in the same network namespace. It sends nothing.
type route struct {
	fd      int
	options *modeOptions
}

// newRoute returns a route from an address, or a route without a socket on failure.
func newRoute(from sockaddr, options *modeOptions) route {
	fd, err := unix.Socket(int(binary.NativeEndian.Uint16(from.raw[0:])), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return route{fd: -1}
	}
	binary.BigEndian.PutUint16(from.raw[2:], 0) // any port
	if err := withAddress(unix.SYS_BIND, fd, &from); err != nil {
		unix.Close(fd)
		return route{fd: -1}
	}
	return route{fd, options}
}

// longest returns the maximum length of a datagram to an address, in bytes, or 0.
func (r *route) longest(to *sockaddr) int {
	if r.fd < 0 || withAddress(unix.SYS_CONNECT, r.fd, to) != nil {
		return 0
	}
	mtu, err := unix.GetsockoptInt(r.fd, r.options.level, r.options.mtu)
	if err != nil {
		return 0
	}
	return max(mtu-r.options.headers, 0)
}

func withAddress(trap uintptr, fd int, addr *sockaddr) error {
	if _, _, errno := unix.Syscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&addr.raw[0])),
		uintptr(addr.len)); errno != 0 {
		return errno
	}
	return nil
}

// longest asks the kernel. If segmentation was refused because of the path's MTU, it is tried again.
func (s *mmsgSocket) longest(peer int) int {
	switch unix.Errno(s.refused[peer].Load()) {
	case unix.EINVAL, unix.EMSGSIZE:
		s.refused[peer].Store(0)
	}
	s.descriptor.out.Lock()
	defer s.descriptor.out.Unlock()
	if s.closed.Load() {
		return 0
	}
	return s.route.longest(&s.peers[peer])
}

// close closes both sockets.
func (s *mmsgSocket) close() error {
	err := s.descriptor.close()
	if err == nil && s.route.fd >= 0 {
		unix.Close(s.route.fd)
	}
	return err
}
