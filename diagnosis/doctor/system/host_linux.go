package system

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// findPorts returns the ports of the local ranks, and the processes that hold them.
func findPorts(p *doctor.Plan) []doctor.Port {
	all := p.NeededPorts()
	for i := range all {
		if s := bindfault.Bound(all[i].Network, all[i].Addr); s != nil {
			all[i].Held, all[i].Holder, all[i].Drops = true, s.Holder, s.Drops
		}
	}
	return all
}

// withSocket calls the function f with a UDP socket that is not bound.
func withSocket(family int, f func(fd int) error) error {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	return f(fd)
}

// readBuffer returns the size of the receive buffer granted to a socket of this process that requests size bytes as
// udp.SetReceiveBuffer does.
func readBuffer(size int) (buffer doctor.Buffer, err error) {
	if text, err := os.ReadFile("/proc/sys/net/core/rmem_max"); err == nil { // not in all network namespaces
		buffer.Limit, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return buffer, withSocket(unix.AF_INET, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size); err != nil {
			return os.NewSyscallError("setsockopt SO_RCVBUF", err)
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) // needs CAP_NET_ADMIN
		granted, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		buffer.Granted = granted / 2 // the kernel doubles it
		return os.NewSyscallError("getsockopt SO_RCVBUF", err)
	})
}

// readOffload returns the UDP offload features that the kernel supports.
func readOffload() (o doctor.Offload, err error) {
	return o, withSocket(unix.AF_INET, func(fd int) error {
		o.Segmentation = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0) == nil
		o.Coalescing = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		return nil
	})
}

// pathMTU returns the path MTU that the kernel knows, or 0 if unknown. It connects a socket, but sends nothing.
func pathMTU(from, to netip.Addr) (mtu int) {
	family, level, option := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU
	if to.Is6() {
		family, level, option = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	err := withSocket(family, func(fd int) (err error) {
		if err = unix.Bind(fd, sockaddr(from, 0)); err == nil {
			if err = unix.Connect(fd, sockaddr(to, discardPort)); err == nil {
				mtu, err = unix.GetsockoptInt(fd, level, option)
			}
		}
		return err
	})
	if err != nil {
		return 0
	}
	return mtu
}

// discardPort is the destination port of sockets that are connected only to query the kernel, and send nothing.
const discardPort = 9

func sockaddr(ip netip.Addr, port int) unix.Sockaddr {
	if ip.Is4() {
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: ip.As16(), Port: port}
}

// readClock reads the clocksource, and whether the kernel considers the wall clock synchronized.
func readClock() (clock doctor.Clock, err error) {
	text, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return clock, err
	}
	clock.Source = strings.TrimSpace(string(text))
	var t unix.Timex // modes 0: nothing is set
	_, err = unix.Adjtimex(&t)
	clock.Synchronized = doctor.NewFact(t.Status&unix.STA_UNSYNC == 0, os.NewSyscallError("adjtimex", err))
	return clock, nil
}

// readFiles returns the limit on open files of a process, and the number of files that it has open. For pid 0, it
// returns the limit that this process could have, because the Go runtime raises the limit to the hard limit.
func readFiles(pid int) (doctor.Files, error) {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return doctor.Files{}, os.NewSyscallError("prlimit", err)
	}
	if pid == 0 {
		return doctor.Files{Limit: limit.Max}, nil
	}
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)) // only root can read it for other users
	return doctor.Files{Limit: limit.Cur, Open: len(open)}, nil
}
