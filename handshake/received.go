package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// NumTypes is the length of tables indexed by protocol.Type.
const NumTypes = int(protocol.Error) + 1

// received counts what has come from the peer and was whole.
type received struct {
	packets, bytes [NumTypes]uint64
}

func (r *received) packet(t protocol.Type, bytes int) {
	r.packets[t]++
	r.bytes[t] += uint64(bytes)
}

// any reports whether a packet has come.
func (r *received) any() bool { return r.packets != [NumTypes]uint64{} }

// data counts payload without a header in so many datagrams.
func (r *received) data(datagrams, bytes int) {
	r.packets[protocol.Data] += uint64(datagrams)
	r.bytes[protocol.Data] += uint64(bytes)
}

// Received returns by type how many packets have come from the peer that were
// valid and addressed to us, and the bytes in them, since New. A DATA message counts
// as the datagrams that it came in, or as one on a Reliable transport.
func (p *Pair) Received() (packets, bytes [NumTypes]uint64) {
	return p.received.packets, p.received.bytes
}
