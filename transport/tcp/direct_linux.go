package tcp

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// directPackets is the maximum number of packets whose payload one read places directly. Any other data that
// the read returns fits in the reader's buffer.
const directPackets = readMost / (protocol.ExtHeaderLen + protocol.MaxStreamPayload)

// direct reads payload straight into a caller's memory. It handles consecutive packets of one message, each of
// maximum length. All other data is moved to the reader's buffer. If only a part of an expected packet has
// arrived, that part stays where it was placed. The next read continues the packet, or skips the rest of it if
// the placement no longer exists, as if the network had lost the packet.
type direct struct {
	// begun is the number of bytes received so far of a partial packet that was placed directly, or 0. head is
	// the header of that packet. place is the address of its payload; as a uintptr it does not keep the memory
	// alive.
	begun int
	head  [protocol.ExtHeaderLen]byte
	place uintptr

	heads [directPackets][protocol.ExtHeaderLen]byte
	// parts are the destinations of the packets' payloads.
	parts [directPackets][]byte
	iovs  [2 * directPackets]unix.Iovec
	msg   unix.Msghdr
}

// read reads into the memory of a placement. It describes the complete packets in batch, except for their
// sender. It returns the number of complete packets, followed by the results of recvmsg.
func (d *direct) read(w *wire, to *mpe.Placement, batch []mpe.RxPacket) (taken, n int, errno unix.Errno) {
	r, at := &w.in, *to
	have := r.buf[r.start:r.end] // start of the first packet, unless it is in place
	there := d.begun
	d.heads[0] = d.head
	packets := d.plan(at.Buf, min(len(batch), directPackets))
	parts := 0
	for i := range packets {
		for _, part := range [...][]byte{d.heads[i][:], d.parts[i]} {
			passed := min(there, len(part))
			there, part = there-passed, part[passed:]
			moved := copy(part, have)
			have = have[moved:]
			if part = part[moved:]; len(part) > 0 {
				d.iovs[parts].Base = &part[0]
				d.iovs[parts].SetLen(len(part))
				parts++
			}
		}
	}
	n, errno = w.recvmsg(&d.msg, d.iovs[:parts])
	if errno != 0 || n == 0 {
		clear(d.parts[:packets])
		return 0, n, errno
	}
	left := r.unread() + d.begun + n
	r.start, r.end, d.begun = 0, 0, 0
	for i := range packets {
		head, payload := d.heads[i][:], d.parts[i]
		length := len(head) + len(payload)
		if left < length && left > len(head) && expects(&at, head, len(payload)) {
			d.begun, d.head, d.place = left, d.heads[i], address(payload)
			break
		}
		if left < length || !r.header.ParseParts(head, payload) || !at.Expects(&r.header) {
			d.gather(r, i, left)
			break
		}
		batch[taken] = mpe.RxPacket{Kind: mpe.RxDatagram, Bytes: head, Rest: payload, Checked: true}
		taken++
		at.Offset += uint32(len(payload))
		r.offset += int64(length)
		left -= length
	}
	if taken > 0 && !w.worked.Load() {
		w.worked.Store(true)
	}
	clear(d.parts[:packets]) // the caller owns the memory: drop the references
	return taken, n, 0
}

// continues reports whether at is the placement of the partial packet.
func (d *direct) continues(at *mpe.Placement) bool {
	return address(at.Buf) == d.place && expects(at, d.head[:], min(len(at.Buf), protocol.MaxStreamPayload))
}

// leaveOut makes the reader skip the rest of the partial packet. The packet is lost.
func (d *direct) leaveOut(r *reader) {
	_, payload, _ := protocol.ParseExtendedHeader(d.head[:])
	r.offset += int64(d.begun)
	r.skip = len(d.head) + int(payload) - d.begun
	d.begun = 0
}

// expects reports whether head is the header of the packet that the placement at is waiting for, with the given
// payload length.
func expects(at *mpe.Placement, head []byte, payload int) bool {
	h, bytes, defect := protocol.ParseExtendedHeader(head)
	return defect.OK() && int(bytes) == payload && at.Expects(&h)
}

// address returns the start address of memory.
func address(memory []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) }

// plan divides buf into the payloads of up to most packets, and returns the number of packets.
func (d *direct) plan(buf []byte, most int) (packets int) {
	for packets < most && len(buf) > 0 {
		n := min(len(buf), protocol.MaxStreamPayload)
		d.parts[packets] = buf[:n:n]
		buf = buf[n:]
		packets++
	}
	return packets
}

// gather moves the last left bytes of a read, which start in packet first, to the reader's buffer.
func (d *direct) gather(r *reader, first, left int) {
	if len(r.buf) < left {
		r.buf = make([]byte, readMost)
	}
	for i := first; r.end < left; i++ {
		r.end += copy(r.buf[r.end:left], d.heads[i][:])
		r.end += copy(r.buf[r.end:left], d.parts[i])
	}
}

// recvmsg reads into the iovs. It returns 0 and no error at the end of the stream.
func (w *wire) recvmsg(msg *unix.Msghdr, iovs []unix.Iovec) (int, unix.Errno) {
	msg.Iov = &iovs[0]
	msg.SetIovlen(len(iovs))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(w.fd), uintptr(unsafe.Pointer(msg)), unix.MSG_DONTWAIT)
	clear(iovs) // the caller owns the memory: drop the references
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// continues reports whether the next packet may be the one that the placement at is waiting for. This is
// possible if the reader holds nothing of that packet, or only its header and a part of its payload.
func (r *reader) continues(at *mpe.Placement) bool {
	have := r.buf[r.start:r.end]
	if len(have) < protocol.ExtHeaderLen {
		return len(have) == 0 && at.Head == protocol.ExtHeaderLen
	}
	payload := min(len(at.Buf), protocol.MaxStreamPayload)
	return len(have) < protocol.ExtHeaderLen+payload && expects(at, have[:protocol.ExtHeaderLen], payload)
}
