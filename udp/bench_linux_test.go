package udp

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// BenchmarkCall measures the time to send and receive a handshake packet, by system calls alone, with a connected and
// an unconnected socket, and by the methods of a Conn. Before each packet there is a poll that finds nothing, as in a
// waiting rank. "empty" measures such polls alone.
func BenchmarkCall(b *testing.B) {
	var packet [protocol.HeaderLen]byte
	send := func(b *testing.B, fd int, to *sockaddr) {
		var name, length uintptr
		if to != nil {
			name, length = uintptr(unsafe.Pointer(&to.raw[0])), uintptr(to.len)
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&packet[0])),
			protocol.HeaderLen, unix.MSG_DONTWAIT, name, length); errno != 0 {
			b.Fatal(errno)
		}
	}
	take := func(b *testing.B, fd int) {
		var from sockaddr
		length := uint32(sockaddrLen)
		if _, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&packet[0])),
			protocol.HeaderLen, unix.MSG_DONTWAIT|unix.MSG_TRUNC,
			uintptr(unsafe.Pointer(&from.raw[0])), uintptr(unsafe.Pointer(&length))); errno != 0 {
			b.Fatal(errno)
		}
	}
	empty := func(fd int) {
		unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&packet[0])), protocol.HeaderLen,
			unix.MSG_DONTWAIT, 0, 0)
	}
	for _, connected := range []bool{false, true} {
		name := "system"
		if connected {
			name = "system-connected"
		}
		b.Run(name, func(b *testing.B) {
			var fds [2]int
			var addrs [2]sockaddr
			for i := range fds {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { unix.Close(fd) })
				addr := transporttest.FreeAddr(b)
				if addrs[i], err = newSockaddr(addr); err != nil {
					b.Fatal(err)
				}
				if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(addr.Port()),
					Addr: addr.Addr().As4()}); err != nil {
					b.Fatal(err)
				}
				fds[i] = fd
			}
			to := &addrs[1]
			if connected {
				peer, err := unix.Getsockname(fds[1])
				if err == nil {
					err = unix.Connect(fds[0], peer)
				}
				if err != nil {
					b.Fatal(err)
				}
				to = nil
			}
			for b.Loop() {
				empty(fds[1])
				send(b, fds[0], to)
				take(b, fds[1])
			}
		})
	}
	m := transporttest.Map(b, 2)
	var conns [2]*Conn
	for i := range conns {
		var err error
		if conns[i], err = Listen(Config{Map: m, Rank: i}); err != nil {
			b.Fatal(err)
		}
		defer conns[i].Close()
	}
	header := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Type: protocol.SendRequest})
	batch := make([]mpe.RxPacket, 64)
	b.Run("conn", func(b *testing.B) {
		for b.Loop() {
			if n, err := conns[1].Poll(batch, nil); n != 0 || err != nil {
				b.Fatal(n, err)
			}
			if err := conns[0].SendHeader(1, header); err != nil {
				b.Fatal(err)
			}
			if n, err := conns[1].Poll(batch, nil); n != 1 || err != nil {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("empty-conn", func(b *testing.B) {
		for b.Loop() {
			if _, err := conns[1].Poll(batch, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("empty-system", func(b *testing.B) {
		fd := conns[1].Wakeup()
		for b.Loop() {
			empty(fd)
		}
	})
}
