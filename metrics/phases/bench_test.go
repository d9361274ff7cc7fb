package phases

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// sent returns a sent message and received returns a received message, in which all phases take some time.
func sent(peer int, unit time.Duration) *mpe.Status {
	start := time.Second
	return &mpe.Status{Peer: peer, Send: true, Phases: handshake.Phases{
		Start: start, Request: start + unit, Clear: start + 20*unit, Data: start + 23*unit, Ack: start + 40*unit,
	}}
}

func received(peer int, unit time.Duration) *mpe.Status {
	start := time.Second
	return &mpe.Status{Peer: peer, Phases: handshake.Phases{
		Start: start, Request: start + 10*unit, Clear: start + 11*unit, Data: start + 30*unit, Ack: start + 31*unit,
	}}
}

// manyPeers returns n remote ranks and rank 0.
func manyPeers(n int) []Peer {
	peers := make([]Peer, n+1)
	for i := range peers {
		peers[i] = Peer{Profile: "extended", Kind: "software"}
	}
	return peers
}

// BenchmarkDone measures the cost of recording a message with all phases, when as many peers are active as can
// have separate series.
func BenchmarkDone(b *testing.B) {
	for _, bm := range []struct {
		name  string
		peers int
		make  func(int, time.Duration) *mpe.Status
	}{
		{"send/peers=1", 1, sent}, {"receive/peers=1", 1, received}, {"send/peers=64", 64, sent},
		{"receive/peers=64", 64, received},
	} {
		b.Run(bm.name, func(b *testing.B) {
			r := NewRecorder(0, manyPeers(bm.peers), 64)
			var ring [256]*mpe.Status
			for i := range ring {
				ring[i] = bm.make(1+i%bm.peers, time.Microsecond+time.Duration(i*i)*time.Nanosecond)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.RecordMessage(ring[i&255], nil)
			}
		})
	}
}
