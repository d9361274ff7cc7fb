package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// busyPollTime is the time in µs that a system call may poll a device.
const busyPollTime = 1000

// udpSocket exchanges datagrams with sendto and recvfrom on an unconnected socket.
type udpSocket struct {
	fd         int
	peer, from unix.RawSockaddrInet4
	fromLen    uint32
	buffer     [payloadLen]byte
}

// rawAddr returns an address for raw system calls, with the port in network byte order on a little-endian machine.
func rawAddr(e *endpoint) unix.RawSockaddrInet4 {
	return unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port>>8 | port&0xff<<8, Addr: e.Addr.As4()}
}

func openSocket(own *endpoint) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must("socket", err)
	must("bind", unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: own.Addr.As4()}))
	return fd
}

func openUDP(busyPoll bool, own, peer *endpoint) transport {
	s := &udpSocket{fd: openSocket(own), peer: rawAddr(peer)}
	if busyPoll {
		setBusyPoll(s.fd)
	}
	return s
}

// setBusyPoll makes system calls on a socket poll its device.
func setBusyPoll(fd int) {
	must("SO_PREFER_BUSY_POLL", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL, 1))
	must("SO_BUSY_POLL", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, busyPollTime))
	must("SO_BUSY_POLL_BUDGET", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL_BUDGET, 16))
}

func (s *udpSocket) send(payload []byte) {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(&payload[0])),
		uintptr(len(payload)), unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&s.peer)), unix.SizeofSockaddrInet4)
	if errno != 0 {
		must("sendto", errno)
	}
}

// receive polls without blocking. The raw system call saves the time of notifying Go's scheduler.
func (s *udpSocket) receive() []byte {
	for {
		s.fromLen = unix.SizeofSockaddrInet4
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&s.buffer[0])),
			uintptr(len(s.buffer)), unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&s.from)),
			uintptr(unsafe.Pointer(&s.fromLen)))
		switch {
		case errno == 0 && s.from == s.peer:
			return s.buffer[:n]
		case errno == 0:
			must("recvfrom", errForeign)
		case errno != unix.EAGAIN && errno != unix.EINTR:
			must("recvfrom", errno)
		}
	}
}

func (s *udpSocket) flush() {}

func (s *udpSocket) check(total int, c counts) { c.checkSockets(total) }

// mapMemory maps memory of a file, or memory that the kernel may access at any time if the file is -1.
func mapMemory(fd int, offset int64, length uintptr) []byte {
	flags := unix.MAP_SHARED | unix.MAP_POPULATE
	if fd < 0 {
		flags |= unix.MAP_ANONYMOUS
	}
	memory, err := unix.Mmap(fd, offset, int(length), unix.PROT_READ|unix.PROT_WRITE, flags)
	must("mmap", err)
	return memory
}

func addressOf(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
