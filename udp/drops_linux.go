package udp

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memInfo is the result of the Linux socket option SO_MEMINFO. memInfoDrops is the index of the number of dropped
// datagrams in it.
type memInfo [9]uint32

const memInfoDrops = 8

// drops returns the kernel's count. The alternative, SO_RXQ_OVFL, reports the count with every datagram, which would
// slow down the packet path.
func (d *descriptor) drops() (uint32, error) {
	d.sendMu.Lock()
	defer d.sendMu.Unlock()
	if d.closed.Load() {
		return 0, net.ErrClosed
	}
	return socketDrops(d.fd)
}

// SocketDrops returns the number of datagrams that the kernel has dropped because the receive buffer of conn was full.
// The number wraps around.
func SocketDrops(conn *net.UDPConn) (n uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	if failed := raw.Control(func(fd uintptr) { n, err = socketDrops(int(fd)) }); failed != nil {
		return 0, failed
	}
	return n, err
}

// socketDrops returns the number of datagrams dropped by a full receive buffer. The error is ENOPROTOOPT if the kernel
// does not count them.
func socketDrops(fd int) (uint32, error) {
	var info memInfo
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	if size <= memInfoDrops*uint32(unsafe.Sizeof(info[0])) { // the kernel is older than 4.9
		return 0, unix.ENOPROTOOPT
	}
	return info[memInfoDrops], nil
}
