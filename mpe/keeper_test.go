package mpe_test

import (
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// keeper holds the state that was stored last.
type keeper struct {
	mu   sync.Mutex
	last handshake.SavedState
}

func (k *keeper) Restore(handshake.Instant) handshake.SavedState { return handshake.SavedState{} }

func (k *keeper) Keep(kept *handshake.SavedState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = *kept
}

// watchedTransport observes the stored state when a packet is sent.
type watchedTransport struct {
	mpe.HandshakeTransport
	t      *testing.T
	keeper *keeper
	seen   map[protocol.Type]int
}

func (w *watchedTransport) look(header []byte) {
	h, _ := protocol.CloudFPGA.Parse(header)
	w.keeper.mu.Lock()
	defer w.keeper.mu.Unlock()
	k := w.keeper.last
	w.seen[h.Type]++
	if right := map[protocol.Type]bool{
		protocol.SendRequest: k.Out.Progress == handshake.Requested,
		protocol.Data:        k.Out.Progress == handshake.Cleared && k.Out.Words == 1000,
		protocol.ClearToSend: k.In.Progress == handshake.Cleared,
		protocol.Ack:         k.In.Progress == handshake.Acknowledged && k.HasReceived && k.Size == 1000,
	}[h.Type]; !right {
		w.t.Errorf("%v is sent, but the stored state is %+v", h, k)
	}
}

func (w *watchedTransport) SendHeader(peer int, header []byte) error {
	w.look(header)
	return w.HandshakeTransport.SendHeader(peer, header)
}

func (w *watchedTransport) SendData(peer int, header, payload []byte, shape protocol.Shape) error {
	w.look(header)
	return w.HandshakeTransport.SendData(peer, header, payload, shape)
}

// TestKeptBeforeItIsSent checks that the state implied by a packet is stored before the packet is sent, and
// that a message is acknowledged when its ACK is received.
func TestKeptBeforeItIsSent(t *testing.T) {
	net, rules := memnet.New(2), handshake.SoftwarePeer()
	var engines [2]*mpe.Engine
	var watched [2]*watchedTransport
	for rank := range engines {
		var err error
		w := &watchedTransport{HandshakeTransport: net.Transport(rank), t: t, keeper: &keeper{},
			seen: map[protocol.Type]int{}}
		watched[rank] = w
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
		cfg.Peers[1-rank] = mpe.Peer{
			Transport: w, Keeper: w.keeper,
			Handshake: handshake.Config{Peer: rules, Timing: handshake.DefaultTiming(rules), Shape: protocol.CPUShape(),
				MaxWords: 1 << 20},
		}
		if engines[rank], err = mpe.New(cfg); err != nil {
			t.Fatal(err)
		}
		defer engines[rank].Close(t.Context())
	}
	for range 3 {
		for rank, e := range engines {
			op, err := engines[1-rank].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: rank, Buf: make([]byte, 4000)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Send(t.Context(), 1-rank, make([]byte, 4000), mpe.Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := op.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for rank, w := range watched {
		for _, typ := range []protocol.Type{protocol.SendRequest, protocol.ClearToSend, protocol.Data, protocol.Ack} {
			if w.seen[typ] != 3 {
				t.Errorf("rank %d has sent %d %v", rank, w.seen[typ], typ)
			}
		}
	}
	for _, w := range watched {
		w.keeper.mu.Lock()
		defer w.keeper.mu.Unlock()
		if k := &w.keeper.last; k.Out.Progress != handshake.NoMessage || k.In.Progress != handshake.NoMessage {
			t.Errorf("after the last ACK, %+v is kept", k)
		}
	}
}
