package udp

import (
	"encoding/binary"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel segments a long piece into datagrams of one size (UDP_SEGMENT), and puts
// such datagrams together again for the receiver (UDP_GRO): then what goes through
// its network is one packet, and not dozens.

const (
	// maxSegments is how many datagrams older kernels segment at most.
	maxSegments = 64
	// maxPiece is the longest piece, in bytes, that has room for the headers of
	// IPv6 in what the kernel calls a packet.
	maxPiece = 65_000
)

// segmentControl is a control message with a segment size: a struct cmsghdr and an
// uint16, with padding.
type segmentControl [24]byte

func (c *segmentControl) set(size int) {
	binary.NativeEndian.PutUint64(c[0:], unix.SizeofCmsghdr+2)
	binary.NativeEndian.PutUint32(c[8:], unix.SOL_UDP)
	binary.NativeEndian.PutUint32(c[12:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(c[16:], uint16(size))
}

// coalesced returns the segment size in the control messages of a datagram that
// arrived, or 0 if it is one datagram.
func coalesced(control []byte) int {
	if len(control) < unix.SizeofCmsghdr+4 ||
		binary.NativeEndian.Uint32(control[8:]) != unix.SOL_UDP || binary.NativeEndian.Uint32(control[12:]) != unix.UDP_GRO {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(control[unix.SizeofCmsghdr:])))
}

// segments reports whether the kernel segments what goes to a peer.
func (s *mmsgSocket) segments(peer int) bool { return s.caps.segments && s.refused[peer].Load() == 0 }

// disableSegments reports whether an error says that the path to a peer does not allow segmentation, or
// not at this size. It is done here from now on.
func (s *mmsgSocket) disableSegments(peer int, err error) bool {
	errno := refusesSegments(err)
	if errno != 0 {
		s.refused[peer].Store(uint32(errno))
	}
	return errno != 0
}

func (s *mmsgSocket) refusals() []Refusal {
	var all []Refusal
	for peer := range s.refused {
		if errno := s.refused[peer].Load(); errno != 0 {
			all = append(all, Refusal{Peer: peer, Err: syscall.Errno(errno)})
		}
	}
	return all
}

// run returns how many of the first datagrams can go as one piece: to one peer, all
// of one length, but the last may be shorter.
func (s *mmsgSocket) run(out []outgoing) int {
	size := out[0].len()
	if !s.segments(out[0].peer) || size == 0 || out[0].alone {
		return 1
	}
	n, total := 1, size
	for n < min(len(out), maxSegments) && out[n].peer == out[0].peer {
		length := out[n].len()
		if total += length; length > size || length == 0 || total > maxPiece {
			break
		}
		if n++; length < size {
			break
		}
	}
	return n
}

// refusesSegments returns what the kernel says when it cannot segment: no checksums in
// hardware, a path whose MTU is too small, or no such option. Of other errors it
// returns 0.
func refusesSegments(err error) syscall.Errno {
	switch errno, _ := errors.AsType[syscall.Errno](err); errno {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return errno
	}
	return 0
}

// hasSegments reports whether the kernel knows UDP_SEGMENT.
func hasSegments(raw syscall.RawConn) bool {
	var err error
	ctl := raw.Control(func(fd uintptr) { _, err = unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT) })
	return ctl == nil && err == nil
}

const (
	// groFrom is how many long datagrams have to come close together for the
	// kernel to put them together from then on. It takes it a while to try that
	// with each datagram, an eighth of a microsecond of a short message's two; but
	// to segment what the sender has not segmented takes it longer.
	groFrom = 2
	// groMinLen is how long they are at least, in bytes.
	groMinLen = 512
	// groSingles is after how many single ones it is not worth it any more.
	groSingles = 1000
)

// chooseGRO has the kernel put datagrams together while many come at a time.
// It is called with what has just arrived.
func (s *mmsgSocket) chooseGRO() {
	r := &s.in
	if !r.gro {
		if r.hits == 1 { // a poll found nothing
			r.long = 0
			return
		}
		for i := range r.msgs[:r.have] {
			if r.long++; r.msgs[i].len < groMinLen {
				r.long = 0
			}
		}
		if r.long >= groFrom {
			s.setGRO(true)
		}
		return
	}
	for i := range r.msgs[:r.have] {
		if coalesced(r.controls[i][:min(int(r.msgs[i].hdr.Controllen), len(r.controls[i]))]) > 0 {
			r.single = 0
			return
		}
	}
	if r.single += r.have; r.single > groSingles {
		s.setGRO(false)
	}
}

// setGRO switches UDP_GRO. Where that fails, it stays as it was.
func (s *mmsgSocket) setGRO(on bool) {
	value := 0
	if on {
		value = 1
	}
	if unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_GRO, value) == nil {
		s.in.gro, s.in.single, s.in.long = on, 0, 0
	}
}

// hasCoalescing reports whether the kernel has UDP_GRO. It is not switched on yet.
func hasCoalescing(raw syscall.RawConn) bool {
	var err error
	ctl := raw.Control(func(fd uintptr) {
		for _, on := range []int{1, 0} {
			if err == nil {
				err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, on)
			}
		}
	})
	return ctl == nil && err == nil
}
