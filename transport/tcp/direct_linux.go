package tcp

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// directPackets is how many packets are read straight to where their payload belongs at a time, at
// most. If something else has come, there is room for it in the reader's buffer.
const directPackets = readMost / (protocol.ExtHeaderLen + protocol.MaxStreamPayload)

// direct reads payload into a caller's memory: that of consecutive packets of one message,
// as long as packets may be. Whatever else arrives is moved to the reader's buffer. A packet that is
// expected, and of which only a part has come, stays where it is: the next read continues it, or leaves it
// out if its place is not there any longer, as if the network had lost it.
type direct struct {
	// begun is how many bytes of a packet have come of which the payload stays in its place; 0 is none. Its header
	// is in head, and place is the address of its place, which is not kept from being freed.
	begun int
	head  [protocol.ExtHeaderLen]byte
	place uintptr

	heads [directPackets][protocol.ExtHeaderLen]byte
	// parts are where the payload of each packet goes.
	parts [directPackets][]byte
	iovs  [2 * directPackets]unix.Iovec
	msg   unix.Msghdr
}

// read reads into the memory of a placement, and describes the whole packets in the batch, but
// for their sender. It returns how many these are, and what wire.read does.
func (d *direct) read(w *wire, to *mpe.Placement, batch []mpe.RxPacket) (taken, n int, errno unix.Errno) {
	r, at := &w.in, *to
	have := r.buf[r.start:r.end] // the beginning of the first packet, unless it is in its place
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
	clear(d.parts[:packets]) // the memory is the caller's: keep no hold of it
	return taken, n, 0
}

// continues reports whether the packet of which a part is in its place goes on where a placement says.
func (d *direct) continues(at *mpe.Placement) bool {
	return address(at.Buf) == d.place && expects(at, d.head[:], min(len(at.Buf), protocol.MaxStreamPayload))
}

// leaveOut has the rest of that packet skipped, which is lost then.
func (d *direct) leaveOut(r *reader) {
	_, payload, _ := protocol.ParseExtendedHeader(d.head[:])
	r.offset += int64(d.begun)
	r.skip = len(d.head) + int(payload) - d.begun
	d.begun = 0
}

// expects reports whether a header is that of the packet that a placement is for, with a payload of so many bytes.
func expects(at *mpe.Placement, head []byte, payload int) bool {
	h, bytes, defect := protocol.ParseExtendedHeader(head)
	return defect.OK() && int(bytes) == payload && at.Expects(&h)
}

// address is where memory begins.
func address(memory []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) }

// plan divides memory among packets, and returns how many they are, up to most.
func (d *direct) plan(buf []byte, most int) (packets int) {
	for packets < most && len(buf) > 0 {
		n := min(len(buf), protocol.MaxStreamPayload)
		d.parts[packets] = buf[:n:n]
		buf = buf[n:]
		packets++
	}
	return packets
}

// gather moves what was read, so many bytes from the first packet on, to the reader's
// buffer.
func (d *direct) gather(r *reader, first, left int) {
	if len(r.buf) < left {
		r.buf = make([]byte, readMost)
	}
	for i := first; r.end < left; i++ {
		r.end += copy(r.buf[r.end:left], d.heads[i][:])
		r.end += copy(r.buf[r.end:left], d.parts[i])
	}
}

// recvmsg reads into what the iovs say.
func (w *wire) recvmsg(msg *unix.Msghdr, iovs []unix.Iovec) (int, unix.Errno) {
	msg.Iov = &iovs[0]
	msg.SetIovlen(len(iovs))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(w.fd), uintptr(unsafe.Pointer(msg)), unix.MSG_DONTWAIT)
	clear(iovs) // the memory is the caller's: keep no hold of it
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// continues reports whether the next packet may be the one that a placement is for: nothing of it
// was read, or its header and a part of its payload.
func (r *reader) continues(at *mpe.Placement) bool {
	have := r.buf[r.start:r.end]
	if len(have) < protocol.ExtHeaderLen {
		return len(have) == 0 && at.Head == protocol.ExtHeaderLen
	}
	payload := min(len(at.Buf), protocol.MaxStreamPayload)
	return len(have) < protocol.ExtHeaderLen+payload && expects(at, have[:protocol.ExtHeaderLen], payload)
}
