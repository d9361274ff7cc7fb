package recorder

import (
	"testing"
)

// BenchmarkPacket measures the recording of a packet: a header in the extended profile and 4 bytes.
func BenchmarkPacket(b *testing.B) {
	r := New(16<<20, []Plan{{Rank: 0, Peers: []Peer{{}, {Recorded: true}}}}).Rank(0)
	p := r.Pair(1)
	header, payload := make([]byte, 80), make([]byte, 4)
	b.ReportAllocs()
	for b.Loop() {
		p.Packet(1, true, 84, header, payload)
	}
}
