package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// NumTypes is the length of tables indexed by protocol.Type.
const NumTypes = int(protocol.Error) + 1

// received counts the valid packets from the peer.
type received struct {
	packets, bytes [NumTypes]uint64
}

func (r *received) packet(t protocol.Type, bytes int) {
	r.packets[t]++
	r.bytes[t] += uint64(bytes)
}

// any reports whether a packet was received.
func (r *received) any() bool { return r.packets != [NumTypes]uint64{} }

// data counts payload without a header that came in the given number of datagrams.
func (r *received) data(datagrams, bytes int) {
	r.packets[protocol.Data] += uint64(datagrams)
	r.bytes[protocol.Data] += uint64(bytes)
}

// Received returns the number of valid packets from the peer that were addressed to us, and of the bytes in them, by
// type, since New. A DATA message counts as its datagrams, or as one packet on a Reliable transport.
func (p *Pair) Received() (packets, bytes [NumTypes]uint64) {
	return p.received.packets, p.received.bytes
}
