package system

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
)

const (
	// echoTries is the maximum number of times that a request is sent. echoWait is the time to wait for each answer.
	// Together they are long enough for ARP, whose entries fail after three seconds.
	echoTries = 3
	echoWait  = 1100 * time.Millisecond
	// echoGap is the interval between two echo requests. It prevents bursts.
	echoGap = 200 * time.Microsecond
)

// probeEcho sends two echo requests with DF on each path, and records which were answered. One is short, and the other
// has the length of the longest packet that the path must carry.
func probeEcho(ctx context.Context, paths []doctor.Path) {
	var sources []netip.Addr
	for i := range paths {
		if from := paths[i].From; !slices.Contains(sources, from) {
			sources = append(sources, from)
		}
	}
	for _, from := range sources {
		socket, err := openEcho(from)
		for i := range paths {
			if paths[i].From == from {
				e := doctor.NewFact(doctor.Echo{}, err)
				paths[i].Echo = &e
			}
		}
		if err != nil {
			continue
		}
		socket.paths = paths
		socket.probeAll(ctx)
		unix.Close(socket.fd)
	}
}

// echoSocket sends echo requests from one address.
type echoSocket struct {
	fd    int
	from  netip.Addr
	raw   bool // answers include the IPv4 header, and answers to other programs arrive as well
	id    int
	paths []doctor.Path
}

// openEcho opens a ping socket if this user is permitted to, and otherwise a raw socket.
func openEcho(from netip.Addr) (*echoSocket, error) {
	family, protocol, level, discover, do := unix.AF_INET, unix.IPPROTO_ICMP, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER,
		unix.IP_PMTUDISC_DO
	if from.Is6() {
		family, protocol, level, discover, do = unix.AF_INET6, unix.IPPROTO_ICMPV6, unix.IPPROTO_IPV6,
			unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
	}
	socket := &echoSocket{from: from, id: os.Getpid() & 0xFFFF}
	var err error
	if socket.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol); err != nil {
		socket.raw = true
		if socket.fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol); err != nil {
			return nil, errors.New("this user may not send ICMP echo requests: " + err.Error())
		}
	}
	if err = unix.SetsockoptInt(socket.fd, level, discover, do); err == nil {
		err = unix.Bind(socket.fd, sockaddr(from, 0))
	}
	if err != nil {
		unix.Close(socket.fd)
		return nil, errors.New("cannot send ICMP echo requests: " + err.Error())
	}
	return socket, nil
}

// probeAll sends the echo requests, each up to echoTries times, until all are answered or ctx is done.
func (s *echoSocket) probeAll(ctx context.Context) {
	for range echoTries {
		if ctx.Err() != nil || s.allAnswered() {
			return
		}
		for i := range s.paths {
			if s.paths[i].From != s.from {
				continue
			}
			if !s.paths[i].Echo.Value.Long {
				s.send(i, false, doctor.ShortEcho)
				s.send(i, true, s.paths[i].Length)
				time.Sleep(echoGap)
			}
		}
		s.receive(ctx, time.Now().Add(echoWait))
	}
}

// allAnswered reports whether all long echo requests have been answered.
func (s *echoSocket) allAnswered() bool {
	return !slices.ContainsFunc(s.paths, func(p doctor.Path) bool { return p.From == s.from && !p.Echo.Value.Long })
}

// ipHeaderLen returns the length in bytes of the IP header that precedes the ICMP header.
func (s *echoSocket) ipHeaderLen() int {
	if s.from.Is4() {
		return 20
	}
	return 40
}

// icmpHeader is the length in bytes of the header of an echo request.
const icmpHeader = 8

// send sends an echo request in a packet of the given length. If sending fails, the request remains unanswered, or the
// kernel has learned a smaller MTU.
func (s *echoSocket) send(path int, long bool, length int) {
	sequence := path << 1
	if long {
		sequence |= 1
	}
	m := icmp.Message{Type: ipv4.ICMPTypeEcho,
		Body: &icmp.Echo{ID: s.id, Seq: sequence & 0xFFFF, Data: make([]byte, max(length-s.ipHeaderLen()-icmpHeader, 0))}}
	if s.from.Is6() {
		m.Type = ipv6.ICMPTypeEchoRequest
	}
	packet, err := m.Marshal(nil)
	if err != nil {
		return
	}
	_ = unix.Sendto(s.fd, packet, 0, sockaddr(s.paths[path].To, 0))
}

// receiveUntil sets a timeout for the next receive from a socket. It returns false if the deadline has passed.
func receiveUntil(fd int, deadline time.Time) bool {
	left := time.Until(deadline)
	if left <= 0 {
		return false
	}
	wait := unix.NsecToTimeval(int64(max(left, time.Microsecond)))
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait) == nil
}

// receive processes answers to echo requests until all are received or the deadline has passed.
func (s *echoSocket) receive(ctx context.Context, deadline time.Time) {
	buf := make([]byte, 1<<16)
	for !s.allAnswered() && ctx.Err() == nil {
		if !receiveUntil(s.fd, deadline) {
			return
		}
		n, from, err := unix.Recvfrom(s.fd, buf, 0)
		if err == nil {
			s.recordAnswer(buf[:n], from)
		}
	}
}

// recordAnswer records a packet that answers an echo request. It ignores other packets.
func (s *echoSocket) recordAnswer(b []byte, from unix.Sockaddr) {
	var source netip.Addr
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		source = netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		source = netip.AddrFrom16(a.Addr)
	}
	reply := byte(ipv6.ICMPTypeEchoReply)
	if s.from.Is4() {
		reply = byte(ipv4.ICMPTypeEchoReply)
		if s.raw && len(b) > 0 {
			b = b[min(int(b[0]&0xF)*4, len(b)):]
		}
	}
	if len(b) < icmpHeader || b[0] != reply || s.raw && int(binary.BigEndian.Uint16(b[4:])) != s.id {
		return
	}
	sequence := int(binary.BigEndian.Uint16(b[6:]))
	path, long := sequence>>1, sequence&1 == 1
	if path >= len(s.paths) || s.paths[path].To != source || s.paths[path].From != s.from {
		return
	}
	e := &s.paths[path].Echo.Value
	e.Short = true
	e.Long = e.Long || long
}
