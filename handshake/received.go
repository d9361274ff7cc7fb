package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// NumTypes is the length of arrays that are indexed by protocol.Type.
const NumTypes = int(protocol.Error) + 1

// packetCounts counts the valid packets received from the peer, and the bytes in them.
type packetCounts struct {
	packets, bytes [NumTypes]uint64
}

func (r *packetCounts) countPacket(t protocol.Type, bytes int) {
	r.packets[t]++
	r.bytes[t] += uint64(bytes)
}

// any reports whether a packet was received.
func (r *packetCounts) any() bool { return r.packets != [NumTypes]uint64{} }

// countPayload counts payload that came without a header, in the given number of datagrams.
func (r *packetCounts) countPayload(datagrams, bytes int) {
	r.packets[protocol.Data] += uint64(datagrams)
	r.bytes[protocol.Data] += uint64(bytes)
}

// ReceivedCounts returns the number of valid packets received from the peer since New that were addressed to this rank,
// and the number of bytes in them, by type. Each datagram of a DATA message counts as a packet; on a Reliable
// transport, the message counts as one packet.
func (p *Pair) ReceivedCounts() (packets, bytes [NumTypes]uint64) {
	return p.counts.packets, p.counts.bytes
}
