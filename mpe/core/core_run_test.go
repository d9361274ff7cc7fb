package core

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestCoresOnSimulatedTime checks that cores exchange messages without a goroutine or a clock, despite
// losses, and that the same seed leads to the same transcript.
func TestCoresOnSimulatedTime(t *testing.T) {
	for _, tt := range []struct {
		name string
		peer func(local, remote int) Peer
		net  faults
	}{
		{"cloudfpga", software, faults{}}, {"cloudfpga with losses", software, faults{loss: 0.05}},
		{"extended", extendedPeer, faults{}}, {"extended with losses", extendedPeer, faults{loss: 0.05}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			messages := func(seed uint64) []byte {
				w := newCores(t, seed, 3, tt.net, tt.peer)
				var requests []*Request
				var sent, got [][]byte
				for i := range 60 {
					from := w.rng.IntN(3)
					to := (from + 1 + w.rng.IntN(2)) % 3
					b := make([]byte, 4*(1+w.rng.IntN(2000)))
					binary.LittleEndian.PutUint32(b, uint32(i))
					into := make([]byte, len(b))
					sent, got = append(sent, b), append(got, into)
					requests = append(requests,
						w.start(t, from, Operation{Kind: OpSend, Peer: to, Buf: b}),
						w.start(t, to, Operation{Kind: OpRecv, Peer: from, Buf: into}))
				}
				w.run(t, requests)
				for i := range sent {
					if !bytes.Equal(sent[i], got[i]) {
						t.Errorf("message %d has changed", i)
					}
				}
				return w.transcript.Sum(nil)
			}
			once := messages(3)
			if again := messages(3); !bytes.Equal(once, again) {
				t.Error("the same seed does something else")
			}
			if other := messages(23); bytes.Equal(once, other) {
				t.Error("another seed does the same")
			}
		})
	}
}

// TestStoppedOnSimulatedTime checks that a rank that was stopped processes received packets before its
// timeouts expire.
func TestStoppedOnSimulatedTime(t *testing.T) {
	for name, peer := range map[string]func(local, remote int) Peer{"cloudfpga": software, "extended": extendedPeer} {
		for seed := range uint64(10) { // events at the same time have a random order
			w := newCores(t, seed, 2, faults{}, peer)
			for range 2 {
				w.run(t, []*Request{
					w.start(t, 0, Operation{Kind: OpSend, Peer: 1, Buf: make([]byte, 1000)}),
					w.start(t, 1, Operation{Kind: OpRecv, Peer: 0, Buf: make([]byte, 1000)}),
				})
				w.ports[0].stopped = w.now + time.Second
			}
			for w.now < 2*time.Second && w.step() {
			}
			if p := w.cores[0].peers.at(1); p.events[state.EventTimedOut]+p.events[state.EventRetransmitted] > 0 {
				t.Errorf("%s, seed %d: something was retransmitted", name, seed)
			}
		}
	}
}
