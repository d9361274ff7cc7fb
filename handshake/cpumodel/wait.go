package cpumodel

import (
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// maxDatagram is the maximum length of a datagram that the library sends. It splits longer messages.
	maxDatagram = protocol.MaxDatagram
	// recvSlack is the length in bytes by which the receive buffer exceeds the payload.
	recvSlack = headerLen + 32
)

// wait describes the progress of a wait for a header and its payload. The library keeps these variables on its stack.
type wait struct {
	typ  protocol.Type
	call protocol.Call
	// recvBuf is the buffer passed to recvfrom: 32 bytes in a wait without payload, and otherwise the receive buffer,
	// which still contains data of earlier datagrams.
	recvBuf []byte
	// max is the maximum number of bytes that recvfrom may write. For a fragmented message, it is also the total length
	// including the header.
	max int
	// isFragmented is set if the awaited message consists of more than one datagram.
	isFragmented bool
	// from is the rank from whose address the latest datagram came.
	from int
	// received and packets count the bytes and datagrams of the message that were received so far.
	received uint32
	packets  int
	// size is the size in the header.
	size uint32
}

// startWait begins a wait for a header, and reports whether such a header was already deferred. It does not check the
// source rank of the deferred header.
func (m *Model) startWait(typ protocol.Type, call protocol.Call) bool {
	payload := 0
	if typ == protocol.Data {
		payload = m.count * wordLen
	}
	m.wait = wait{typ: typ, call: call, from: m.wait.from, max: headerLen + payload}
	m.wait.isFragmented = m.wait.max > maxDatagram
	if payload > 0 {
		m.wait.recvBuf = m.buf
	} else {
		m.wait.recvBuf = make([]byte, headerLen)
	}
	if typ == protocol.Data {
		return false
	}
	h, ok := m.deferred.get(m.peer)
	if !ok || !m.isAwaited(h) {
		return false
	}
	m.deferred.drop(m.peer)
	return true
}

// isAwaited reports whether h is the header that the wait is for. It does not check the size.
func (m *Model) isAwaited(h header) bool {
	return h.src == uint32(m.peer) && h.dst == uint32(m.cfg.Rank) && h.typ == m.wait.typ && h.call == m.wait.call
}

// read handles the result n of recvfrom: the length of datagram d, or -1 after a signal. It defers a valid header other
// than the awaited one, and reports whether the wait is complete.
func (m *Model) read(d datagram, n int) bool {
	w := &m.wait
	if n >= 0 {
		w.from = d.from
		n = min(n, w.max)
		if int(w.received)+n > len(w.recvBuf) {
			m.crashReason = fmt.Sprintf("%d bytes are written at %d of a receive buffer of %d bytes", n, w.received,
				len(w.recvBuf))
			return false
		}
		copy(w.recvBuf[w.received:], d.b[:n])
	}
	hdr, valid := parse(w.recvBuf[w.received:])
	switch {
	case !valid && w.packets == 0:
		return false
	case !valid:
		// Payload, whatever its source and contents.
		return w.count(n)
	case w.packets > 0 || w.from != m.peer || !m.isAwaited(hdr):
		if !m.deferred.put(hdr) {
			m.crashReason = fmt.Sprintf("a header of source rank %d is stored past the last of %d slots", hdr.src, maxRanks)
		}
		return false
	}
	w.size = hdr.size
	return w.count(n)
}

// count adds a datagram of n bytes to the message, and reports whether the message is complete.
func (w *wait) count(n int) bool {
	w.received += uint32(n)
	w.packets++
	return !w.isFragmented || int64(w.received) >= int64(w.max)
}

// timedOutResult is a result of a wait that the library mistakes for a timeout.
const timedOutResult = -3

// result returns the result of a wait that a header completed. In a wait without payload, it is the size in the header.
// Otherwise it is the number of payload bytes as the library computes it, which is negative after a datagram shorter
// than a header.
func (w *wait) result() int32 {
	if w.typ == protocol.Data {
		return int32(w.received - headerLen)
	}
	return int32(w.size)
}

// deliver copies the payload to the program's buffer. Like the library, it compares lengths as unsigned numbers, so
// that a negative length counts as a large one.
func (m *Model) deliver() {
	n := m.wait.result()
	length := uint64(math.MaxUint64)
	if n >= 0 {
		length = uint64(n)
	}
	length = min(length, uint64(len(m.data)))
	copy(m.data, m.buf[headerLen:headerLen+int(length)])
}
