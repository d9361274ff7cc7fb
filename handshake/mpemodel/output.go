package mpemodel

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// transmit fragments a message into datagrams and passes them to the shell.
func (m *Model) transmit(msg []byte) {
	to := int(m.call.peer)
	if !slices.Contains(m.cfg.Peers, to) {
		return
	}
	for _, d := range cut(msg) {
		if m.cfg.SplitTail && len(d) > protocol.MaxDatagram {
			m.out = append(m.out, Packet{To: to, At: m.now, Bytes: d[:protocol.MaxDatagram:protocol.MaxDatagram]})
			d = d[protocol.MaxDatagram:]
		}
		m.out = append(m.out, Packet{To: to, At: m.now, Bytes: d})
	}
}

// cut fragments a message of whole lines as the MPE's output queue does. The queue ends a datagram after 177 lines, but
// checks for that only in words other than the message's last one: if the 177th line is the first half of the last
// word, the second half is sent along, and the datagram has 1424 bytes.
func cut(msg []byte) [][]byte {
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
