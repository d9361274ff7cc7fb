package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// closeRank closes a rank as Engine.Close does without a deadline, and returns the time that this takes.
func (w *world) closeRank(rank int) time.Duration {
	began := w.now
	w.event(rank, (*Core).Drain)
	rest := func() {
		for e := w.cores[rank]; !e.IsIdle(); {
			w.step()
		}
	}
	rest()
	w.event(rank, (*Core).Linger)
	rest()
	w.event(rank, (*Core).Shutdown)
	w.ports[rank].stopped = Never
	return w.now - began
}

// lastMessage sends a message from rank 0 to rank 1, which closes as soon as it has the message. It returns the
// result of the send, and the time that closing takes. Before that, it sends warm-up messages in both directions.
// lose selects, by number, the datagrams after the warm-up that are lost.
func lastMessage(t *testing.T, peer func(local, remote int) Peer, bytes int,
	lose func(n, from int) bool) (took time.Duration, err error) {
	n := -1
	w := newCores(t, 1, 2, faults{lose: func(from, _ int, _ []byte) bool {
		if n < 0 {
			return false
		}
		n++
		return lose(n-1, from)
	}}, peer)
	for from := range 2 {
		w.run(t, []*Request{
			w.start(t, from, Operation{Kind: OpSend, Peer: 1 - from, Buf: make([]byte, 100)}),
			w.start(t, 1-from, Operation{Kind: OpRecv, Peer: from, Buf: make([]byte, 100)}),
		})
	}
	w.until(w.now + 10*time.Second)
	n = 0
	recv := w.start(t, 1, Operation{Kind: OpRecv, Peer: 0, Buf: make([]byte, bytes)})
	send := w.start(t, 0, Operation{Kind: OpSendSync, Peer: 1, Buf: make([]byte, bytes)})
	w.run(t, []*Request{recv})
	took = w.closeRank(1)
	for !send.Done && w.step() {
	}
	return took, send.Err
}

// v09 is like software, with the profile v0.9.
func v09(local, remote int) Peer {
	p := software(local, remote)
	p.Handshake.Profile = protocol.V09
	return p
}

// TestLinger checks that a send succeeds if any one datagram from its sender is lost, or up to three consecutive
// datagrams from the receiver, which closes as soon as it has the message. Without a loss, the rank closes within
// the time of one retransmission.
func TestLinger(t *testing.T) {
	for _, tt := range []struct {
		name string
		peer func(local, remote int) Peer
		// most is the maximum closing time without a loss.
		most time.Duration
	}{
		{"cloudfpga", software, 150 * time.Millisecond},
		{"v0.9", v09, 150 * time.Millisecond},
		{"extended", extendedPeer, 150 * time.Millisecond},
	} {
		for _, bytes := range []int{4, 4000} {
			t.Run(fmt.Sprintf("%s, %d bytes", tt.name, bytes), func(t *testing.T) {
				sent := 0
				took, err := lastMessage(t, tt.peer, bytes, func(n, _ int) bool { sent = n + 1; return false })
				if err != nil || took > tt.most {
					t.Errorf("without a loss: %v, closed in %v, more than %v", err, took, tt.most)
				}
				for first := range sent {
					for more := range 3 {
						var lost []int
						_, err := lastMessage(t, tt.peer, bytes, func(n, from int) bool {
							if n < first || n > first && (more == 0 || from == 0) {
								return false
							}
							if n > first {
								more--
							} else if from == 0 { // only one
								more = 0
							}
							lost = append(lost, n)
							return true
						})
						if err != nil {
							t.Errorf("datagrams %v of %d lost: %v", lost, sent, err)
						}
					}
				}
			})
		}
	}
}

// TestLingerEnds checks that closing takes no longer than the times of the protocol, whatever the peer does,
// and no time if lingering is unnecessary.
func TestLingerEnds(t *testing.T) {
	timing := extended.DefaultTiming(false)
	ack := handshake.DefaultTiming(handshake.SoftwarePeer()).Ack
	all := ack.First // of the peer's retransmissions
	for n := range ack.Retransmissions - 1 {
		all += ack.First + time.Duration(n+1)*ack.Step
	}
	for _, tt := range []struct {
		name string
		peer func(local, remote int) Peer
		most time.Duration
	}{
		{"cloudfpga", software, all + 200*time.Millisecond},
		{"extended", extendedPeer, 3 * timing.MaxRTO},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lost := 0
			took, err := lastMessage(t, tt.peer, 4000, func(_, from int) bool { // after DATA, nothing arrives
				if from == 1 {
					lost++
				}
				return from == 1 && lost > 1
			})
			if err == nil || took > tt.most {
				t.Errorf("closed in %v, of %v at most; the send: %v", took, tt.most, err)
			}
		})
	}
	exchange := func(t *testing.T, net faults, peer func(local, remote int) Peer) *world {
		w := newCores(t, 1, 2, net, peer)
		w.run(t, []*Request{
			w.start(t, 0, Operation{Kind: OpSend, Peer: 1, Buf: make([]byte, 100)}),
			w.start(t, 1, Operation{Kind: OpRecv, Peer: 0, Buf: make([]byte, 100)}),
		})
		return w
	}
	none := func(t *testing.T, w *world, rank int) {
		t.Helper()
		if took := w.closeRank(rank); took > time.Millisecond {
			t.Errorf("rank %d has closed in %v", rank, took)
		}
	}
	for name, peer := range map[string]func(local, remote int) Peer{"cloudfpga": software, "extended": extendedPeer} {
		t.Run(name+", stream", func(t *testing.T) { none(t, exchange(t, faults{stream: true}, peer), 1) })
		t.Run(name+", some time after the last message", func(t *testing.T) {
			w := exchange(t, faults{}, peer)
			w.until(w.now + 5*time.Second)
			none(t, w, 1)
		})
		t.Run(name+", nothing was received", func(t *testing.T) {
			w := newCores(t, 1, 2, faults{}, peer)
			none(t, w, 1)
		})
	}
	t.Run("extended, the peer has closed", func(t *testing.T) {
		w := exchange(t, faults{}, extendedPeer)
		w.until(w.now + time.Second)
		w.run(t, []*Request{
			w.start(t, 1, Operation{Kind: OpSend, Peer: 0, Buf: make([]byte, 100)}),
			w.start(t, 0, Operation{Kind: OpRecv, Peer: 1, Buf: make([]byte, 100)}),
		})
		w.event(1, (*Core).Drain)
		w.until(w.now + 5*time.Millisecond)
		w.event(1, (*Core).Linger)
		none(t, w, 0)
	})
}
