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
// as long as packets may be. Whatever else arrives is moved to the reader's buffer.
type direct struct {
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
	have := r.buf[r.start:r.end] // the beginning of the first packet
	packets := d.plan(at.Buf, min(len(batch), directPackets))
	parts := 0
	for i := range packets {
		for _, part := range [...][]byte{d.heads[i][:], d.parts[i]} {
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
	left := r.unread() + n
	r.start, r.end = 0, 0
	for i := range packets {
		head, payload := d.heads[i][:], d.parts[i]
		length := len(head) + len(payload)
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
	h, payload, defect := protocol.ParseExtendedHeader(have[:protocol.ExtHeaderLen])
	return defect.OK() && int(payload) == min(len(at.Buf), protocol.MaxStreamPayload) && len(have) < protocol.ExtHeaderLen+int(payload) && at.Expects(&h)
}
