package mpemodel

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// transmit fragments a packet into datagrams and passes them to the shell, which drops them if it does not know the
// peer's address.
func (m *Model) transmit(msg []byte) {
	to := int(m.call.peer)
	if !slices.Contains(m.cfg.Peers, to) {
		return
	}
	for _, d := range fragment(msg) {
		if m.cfg.SplitTail && len(d) > protocol.MaxDatagram {
			m.transmitted = append(m.transmitted, Packet{To: to, At: m.now,
				Bytes: d[:protocol.MaxDatagram:protocol.MaxDatagram]})
			d = d[protocol.MaxDatagram:]
		}
		m.transmitted = append(m.transmitted, Packet{To: to, At: m.now, Bytes: d})
	}
}

// fragment fragments a message of whole lines as the MPE's output queue does. The queue ends a datagram after 177
// lines, but not in the middle of the last word of the message. If the 177th line is the first half of that word, the
// queue adds the second half to the same datagram, which then has 1424 bytes.
func fragment(msg []byte) [][]byte {
	var datagrams [][]byte
	start := 0
	for off := 0; off+wordLen < len(msg); off += wordLen {
		for _, end := range [2]int{off + lineLen, off + wordLen} {
			if end-start == protocol.MaxDatagram {
				datagrams = append(datagrams, msg[start:end:end])
				start = end
			}
		}
	}
	return append(datagrams, msg[start:])
}
