package udp

import (
	"encoding/binary"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// The sender's kernel can segment a long piece into datagrams of one size (UDP_SEGMENT), and the receiver's kernel can
// coalesce such datagrams (UDP_GRO). The network stack then handles one packet instead of dozens.

const (
	// maxSegments is the maximum number of segments that older kernels allow in a piece.
	maxSegments = 64
	// minPiece is the minimum length of a piece in bytes. A receiver on this host that uses AF_XDP in generic mode gets a
	// piece as one frame if it fits into a frame, and then cannot distinguish it from a single datagram.
	minPiece = 2048
	// maxPiece is the maximum length of a piece in bytes. Together with the headers of IPv6, such a piece fits into one
	// packet of the kernel.
	maxPiece = 65_000
)

// segmentControl is a control message with a segment size. It consists of a struct cmsghdr, a uint16 and padding.
type segmentControl [24]byte

// set encodes the control message UDP_SEGMENT: a struct cmsghdr and the segment size in 16 bits.
func (c *segmentControl) set(size int) {
	binary.NativeEndian.PutUint64(c[0:], unix.SizeofCmsghdr+2)
	binary.NativeEndian.PutUint32(c[8:], unix.SOL_UDP)
	binary.NativeEndian.PutUint32(c[12:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(c[16:], uint16(size))
}

// segmentSize returns the segment size in the control messages of a received piece, or 0 if it was not coalesced.
func segmentSize(control []byte) int {
	if len(control) < unix.SizeofCmsghdr+4 ||
		binary.NativeEndian.Uint32(control[8:]) != unix.SOL_UDP ||
		binary.NativeEndian.Uint32(control[12:]) != unix.UDP_GRO {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(control[unix.SizeofCmsghdr:])))
}

// segments reports whether the kernel segments pieces for a peer.
func (s *mmsgSocket) segments(peer int) bool {
	return s.caps.canSegment && s.segmentErrnos[peer].Load() == 0
}

// disableSegments reports whether err means that the kernel refuses to segment a piece for a peer. If so, later sends
// to this peer do not use segmentation.
func (s *mmsgSocket) disableSegments(peer int, err error) bool {
	errno := segmentRefusal(err)
	if errno != 0 {
		s.segmentErrnos[peer].Store(uint32(errno))
	}
	return errno != 0
}

func (s *mmsgSocket) refusals() []Refusal {
	var all []Refusal
	for peer := range s.segmentErrnos {
		if errno := s.segmentErrnos[peer].Load(); errno != 0 {
			all = append(all, Refusal{Peer: peer, Err: syscall.Errno(errno)})
		}
	}
	return all
}

// segmentRun returns the number of datagrams at the beginning of out that can be sent as one piece. They have the same
// peer and the same length, except that the last one may be shorter.
func (s *mmsgSocket) segmentRun(out []outgoing) int {
	size := out[0].len()
	if !s.segments(out[0].peer) || size == 0 || out[0].unsegmented {
		return 1
	}
	n, total := 1, size
	for n < min(len(out), maxSegments) && out[n].peer == out[0].peer {
		length := out[n].len()
		if length > size || length == 0 || total+length > maxPiece {
			break
		}
		total += length
		if n++; length < size {
			break
		}
	}
	if total < minPiece {
		return 1
	}
	return n
}

// segmentRefusal returns the error number if err means that the kernel refuses to segment, because checksum offload is
// missing, the path MTU is too small, or the option is not supported. Otherwise it returns 0.
func segmentRefusal(err error) syscall.Errno {
	switch errno, _ := errors.AsType[syscall.Errno](err); errno {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return errno
	}
	return 0
}

// hasSegments reports whether the kernel supports UDP_SEGMENT.
func hasSegments(raw syscall.RawConn) bool {
	var err error
	ctl := raw.Control(func(fd uintptr) { _, err = unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT) })
	return ctl == nil && err == nil
}

const (
	// groThreshold is the number of long datagrams received close together at which coalescing is enabled. It is not
	// enabled permanently, because it adds an eighth of a microsecond to each datagram, compared with two microseconds
	// for a short message. It adds more if the receiving kernel must segment a piece again.
	groThreshold = 2
	// groMinLen is the minimum length of a long datagram, in bytes.
	groMinLen = 512
	// groIdleLimit is the number of consecutive uncoalesced datagrams after which coalescing is disabled.
	groIdleLimit = 1000
)

// chooseGRO enables coalescing when many long datagrams arrive close together, and disables it when the kernel
// coalesces none. It is called after each successful receive.
func (s *mmsgSocket) chooseGRO() {
	receiver := &s.in
	if !receiver.groEnabled {
		if receiver.pollHits == 1 { // the poll before found nothing
			receiver.longDatagrams = 0
			return
		}
		for i := range receiver.msgs[:receiver.received] {
			if receiver.longDatagrams++; receiver.msgs[i].len < groMinLen {
				receiver.longDatagrams = 0
			}
		}
		if receiver.longDatagrams >= groThreshold {
			s.setGRO(true)
		}
		return
	}
	for i := range receiver.msgs[:receiver.received] {
		if segmentSize(receiver.controls[i][:min(int(receiver.msgs[i].hdr.Controllen), len(receiver.controls[i]))]) > 0 {
			receiver.uncoalesced = 0
			return
		}
	}
	if receiver.uncoalesced += receiver.received; receiver.uncoalesced > groIdleLimit {
		s.setGRO(false)
	}
}

// setGRO enables or disables UDP_GRO. On failure, nothing changes.
func (s *mmsgSocket) setGRO(on bool) {
	value := 0
	if on {
		value = 1
	}
	if unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_GRO, value) == nil {
		s.in.groEnabled, s.in.uncoalesced, s.in.longDatagrams = on, 0, 0
	}
}

// hasCoalescing reports whether the kernel supports UDP_GRO. It leaves UDP_GRO disabled.
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
