package metrics

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
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
func manyPeers(n int) []phases.Peer {
	peers := make([]phases.Peer, n+1)
	for i := range peers {
		peers[i] = phases.Peer{Profile: "extended", Kind: "software"}
	}
	return peers
}
