package tcp

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// directPackets is the maximum number of packets whose payload one read places directly. Any other data that
// the read returns fits in the reader's buffer.
const directPackets = maxReadLen / (protocol.ExtHeaderLen + protocol.MaxStreamPayload)

// directReader reads payload straight into a caller's memory. It handles consecutive packets of one message, each of
// maximum length. It moves all other data to the reader's buffer. A partly received packet stays where it was placed.
// The next read continues the packet or, if the placement no longer exists, skips the rest of it, as if the network had
// lost the packet.
type directReader struct {
	// partialBytes is the number of bytes received so far of a partial packet that was placed directly, or 0.
	// partialHead is the header of that packet. partialAddr is the address of its payload, a uintptr so that it does
	// not keep the memory alive.
	partialBytes int
	partialHead  [protocol.ExtHeaderLen]byte
	partialAddr  uintptr

	heads [directPackets][protocol.ExtHeaderLen]byte
	// parts holds the destinations for the payloads of the packets.
	parts [directPackets][]byte
	iovs  [2 * directPackets]unix.Iovec
	msg   unix.Msghdr
}

// read reads into the memory of a placement. For each complete packet it fills an entry of batch, except for the
// sender. It returns the number of complete packets, followed by the results of recvmsg.
func (d *directReader) read(w *wire, to *mpe.Placement, batch []mpe.RxPacket) (taken, n int, errno unix.Errno) {
	r, at := &w.in, *to
	have := r.buf[r.start:r.end] // start of the first packet, unless it is in place
	there := d.partialBytes
	d.heads[0] = d.partialHead
	packets := d.planPackets(at.Buf, min(len(batch), directPackets))
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
	left := r.unreadBytes() + d.partialBytes + n
	r.start, r.end, d.partialBytes = 0, 0, 0
	for i := range packets {
		head, payload := d.heads[i][:], d.parts[i]
		length := len(head) + len(payload)
		if left < length && left > len(head) && matchesPlacement(&at, head, len(payload)) {
			d.partialBytes, d.partialHead, d.partialAddr = left, d.heads[i], addressOf(payload)
			break
		}
		if left < length || !r.header.ParseParts(head, payload) || !at.MatchesHeader(&r.header) {
			d.moveToReader(r, i, left)
			break
		}
		batch[taken] = mpe.RxPacket{Kind: mpe.RxDatagram, Bytes: head, Tail: payload, Verified: true}
		taken++
		at.Offset += uint32(len(payload))
		r.offset += int64(length)
		left -= length
	}
	if taken > 0 && !w.hasReceived.Load() {
		w.hasReceived.Store(true)
	}
	clear(d.parts[:packets]) // the caller owns the memory: drop the references
	return taken, n, 0
}

// continuesPartial reports whether the placement at belongs to the partly received packet.
func (d *directReader) continuesPartial(at *mpe.Placement) bool {
	return addressOf(at.Buf) == d.partialAddr &&
		matchesPlacement(at, d.partialHead[:], min(len(at.Buf), protocol.MaxStreamPayload))
}

// skipPartial drops the partial packet: the reader skips the rest of it.
func (d *directReader) skipPartial(r *reader) {
	_, payload, _ := protocol.ParseExtendedHeader(d.partialHead[:])
	r.offset += int64(d.partialBytes)
	r.skip = len(d.partialHead) + int(payload) - d.partialBytes
	d.partialBytes = 0
}

// matchesPlacement reports whether head is the header that the placement at expects, with the given payload length.
func matchesPlacement(at *mpe.Placement, head []byte, payload int) bool {
	h, bytes, defect := protocol.ParseExtendedHeader(head)
	return defect.OK() && int(bytes) == payload && at.MatchesHeader(&h)
}

// addressOf returns the start address of memory.
func addressOf(memory []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) }

// planPackets divides buf into the payloads of up to most packets, and returns the number of packets.
func (d *directReader) planPackets(buf []byte, most int) (packets int) {
	for packets < most && len(buf) > 0 {
		n := min(len(buf), protocol.MaxStreamPayload)
		d.parts[packets] = buf[:n:n]
		buf = buf[n:]
		packets++
	}
	return packets
}

// moveToReader moves the last left bytes of a read to the reader's buffer. These bytes begin in the packet with index
// first.
func (d *directReader) moveToReader(r *reader, first, left int) {
	if len(r.buf) < left {
		r.buf = make([]byte, maxReadLen)
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

// mayContinue reports whether the next packet may be the one that placement at expects. This is possible if the reader
// holds nothing of that packet, or only its header and a part of its payload.
func (r *reader) mayContinue(at *mpe.Placement) bool {
	have := r.buf[r.start:r.end]
	if len(have) < protocol.ExtHeaderLen {
		return len(have) == 0 && at.HeaderLen == protocol.ExtHeaderLen
	}
	payload := min(len(at.Buf), protocol.MaxStreamPayload)
	return len(have) < protocol.ExtHeaderLen+payload && matchesPlacement(at, have[:protocol.ExtHeaderLen], payload)
}
