package cpumodel

import (
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// maxDatagram is the longest datagram that the library sends; a longer message needs several.
	maxDatagram = protocol.MaxDatagram
	// slack is the number of bytes by which the receive buffer exceeds the payload.
	slack = headerLen + 32
)

// wait is a wait for a header and its payload: the variables that the library has on its stack.
type wait struct {
	typ  protocol.Type
	call protocol.Call
	// into is the buffer of recvfrom: 32 bytes without payload, the receive buffer with payload. Data of an earlier
	// datagram remains in it.
	into []byte
	// max is the maximum number of bytes that recvfrom writes, and the length of a complete message of several
	// datagrams.
	max int
	// several: the message needs more than one datagram.
	several bool
	// from is the rank of the latest source address.
	from int
	// received and packets are the bytes and datagrams of the message so far.
	received uint32
	packets  int
	// size is the size in the header.
	size uint32
}

// startWait begins a wait for a header, and searches the deferred ones for it, without a check of their source.
// It reports whether it was found.
func (m *Model) startWait(typ protocol.Type, call protocol.Call) bool {
	payload := 0
	if typ == protocol.Data {
		payload = m.count * wordLen
	}
	m.w = wait{typ: typ, call: call, from: m.w.from, max: headerLen + payload}
	m.w.several = m.w.max > maxDatagram
	if payload > 0 {
		m.w.into = m.buf
	} else {
		m.w.into = make([]byte, headerLen)
	}
	if typ == protocol.Data {
		return false
	}
	h, ok := m.deferred.get(m.peer)
	if !ok || !m.wants(h) {
		return false
	}
	m.deferred.drop(m.peer)
	return true
}

// wants reports whether h is the awaited header. The size is not checked.
func (m *Model) wants(h header) bool {
	return h.src == uint32(m.peer) && h.dst == uint32(m.cfg.Rank) && h.typ == m.w.typ && h.call == m.w.call
}

// read handles the result of recvfrom: a datagram of n bytes, or -1 after a signal. It stores a header that is not the
// awaited one, and reports whether the wait is over.
func (m *Model) read(d datagram, n int) bool {
	w := &m.w
	if n >= 0 {
		w.from = d.from
		n = min(n, w.max)
		if int(w.received)+n > len(w.into) {
			m.crash = fmt.Sprintf("%d bytes are written at %d of a receive buffer of %d bytes", n, w.received,
				len(w.into))
			return false
		}
		copy(w.into[w.received:], d.b[:n])
	}
	h, valid := parse(w.into[w.received:])
	switch {
	case !valid && w.packets == 0:
		return false
	case !valid:
		// Payload, whatever its source and contents.
		return w.count(n)
	case w.packets > 0 || w.from != m.peer || !m.wants(h):
		if !m.deferred.put(h) {
			m.crash = fmt.Sprintf("a header of source rank %d is stored past the last of %d slots", h.src, maxRanks)
		}
		return false
	}
	w.size = h.size
	return w.count(n)
}

// count adds n bytes to the message, and reports whether it is complete.
func (w *wait) count(n int) bool {
	w.received += uint32(n)
	w.packets++
	return !w.several || int64(w.received) >= int64(w.max)
}

// timedOutResult is the result of a wait that the library interprets as a time-out.
const timedOutResult = -3

// result returns the result of a wait that ended with a header: without payload the size in the header, otherwise the
// number of payload bytes that the library believes to have, which is negative if the datagram was shorter than a
// header.
func (w *wait) result() int32 {
	if w.typ == protocol.Data {
		return int32(w.received - headerLen)
	}
	return int32(w.size)
}

// deliver copies the payload to the program's buffer. The library compares the lengths as unsigned numbers.
func (m *Model) deliver() {
	n := m.w.result()
	length := uint64(math.MaxUint64)
	if n >= 0 {
		length = uint64(n)
	}
	length = min(length, uint64(len(m.data)))
	copy(m.data, m.buf[headerLen:headerLen+int(length)])
}
