package udp

import (
	"encoding/binary"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket option determines how the kernel treats datagrams that are too long for the path. The rank's only socket
// carries packets of all profiles, so the option is set whenever consecutive datagrams have different modes: only once
// if all peers use the same profile.

// Lengths, in bytes, of the headers that precede the payload of a datagram.
const (
	headersIPv4 = 20 + 8
	headersIPv6 = 40 + 8
)

// minMTU is the minimum MTU of IPv6, whose routers do not fragment. Every path thus carries fragments of this
// length.
const minMTU = 1280

// modeOptions describes the socket options that set a sendMode, for one version of IP.
type modeOptions struct {
	level, discover, mtu int
	fragments            bool // mtu can set the length of fragments
	headers              int
}

func (s *sockaddr) modeOptions() modeOptions {
	if binary.NativeEndian.Uint16(s.raw[0:]) == unix.AF_INET6 {
		return modeOptions{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_MTU, true, headersIPv6}
	}
	return modeOptions{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_MTU, false, headersIPv4}
}

// discoverValues contains the value of the socket option for each mode. With PROBE, the kernel forbids routers to
// fragment, rejects datagrams that are too long for the interface, and ignores reports about the MTU of the rest of the
// path.
var discoverValues = [...]int{sendWhole: unix.IP_PMTUDISC_PROBE, sendFragments: unix.IP_PMTUDISC_DONT}

// set makes the socket use a mode. byDefault is the value of the option for sendDefault.
func (o *modeOptions) set(fd int, mode sendMode, byDefault int) (err error) {
	value := byDefault
	if mode != sendDefault {
		value = discoverValues[mode]
	}
	if o.fragments {
		length := 0 // as known for the path
		if mode == sendFragments {
			length = minMTU
		}
		err = unix.SetsockoptInt(fd, o.level, o.mtu, length)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, o.level, o.discover, value)
	}
	return os.NewSyscallError("setsockopt", err)
}

// hasModes reports whether the system supports all modes, and returns the default value of the socket option. It tries
// every mode, and sets the default one last.
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

// setMode sets the mode of the socket. Like send, it is called by one goroutine at a time.
func (s *mmsgSocket) setMode(mode sendMode) error {
	s.descriptor.sendMu.Lock()
	defer s.descriptor.sendMu.Unlock()
	if s.closed.Load() {
		return net.ErrClosed
	}
	if err := s.options.set(s.fd, mode, s.defaultMode); err != nil {
		return err
	}
	s.mode = mode
	return nil
}

// route is a socket that sends nothing. It is connected to a peer to find the MTU of the path. It is opened together
// with the rank's socket, in the same network namespace.
type route struct {
	fd      int
	options *modeOptions
}

// newRoute returns a route whose socket is bound to the IP address of from. On failure, the route has no socket.
func newRoute(from sockaddr, options *modeOptions) route {
	fd, err := unix.Socket(int(binary.NativeEndian.Uint16(from.raw[0:])), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return route{fd: -1}
	}
	binary.BigEndian.PutUint16(from.raw[2:], 0) // any port
	if err := addressSyscall(unix.SYS_BIND, fd, &from); err != nil {
		unix.Close(fd)
		return route{fd: -1}
	}
	return route{fd, options}
}

// pathDatagramLen returns the maximum length of a datagram to an address, in bytes, or 0 if unknown.
func (r *route) pathDatagramLen(to *sockaddr) int {
	if r.fd < 0 || addressSyscall(unix.SYS_CONNECT, r.fd, to) != nil {
		return 0
	}
	mtu, err := unix.GetsockoptInt(r.fd, r.options.level, r.options.mtu)
	if err != nil {
		return 0
	}
	return max(mtu-r.options.headers, 0)
}

// addressSyscall makes a system call with the arguments of bind and connect. Package unix would first convert the
// address.
func addressSyscall(trap uintptr, fd int, addr *sockaddr) error {
	if _, _, errno := unix.Syscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&addr.raw[0])),
		uintptr(addr.len)); errno != 0 {
		return errno
	}
	return nil
}

// pathDatagramLen asks the kernel. If the kernel has refused segmentation because of the path MTU, the next send tries
// it again.
func (s *mmsgSocket) pathDatagramLen(peer int) int {
	switch unix.Errno(s.segmentErrnos[peer].Load()) {
	case unix.EINVAL, unix.EMSGSIZE:
		s.segmentErrnos[peer].Store(0)
	}
	s.descriptor.sendMu.Lock()
	defer s.descriptor.sendMu.Unlock()
	if s.closed.Load() {
		return 0
	}
	return s.route.pathDatagramLen(&s.peers[peer])
}

// close closes both sockets.
func (s *mmsgSocket) close() error {
	err := s.descriptor.close()
	if err == nil && s.route.fd >= 0 {
		unix.Close(s.route.fd)
	}
	return err
}
