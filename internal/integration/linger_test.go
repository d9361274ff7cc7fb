package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/udp"
)

// lastAckLost is a socket that loses the next acknowledgement and the next close of a rank.
type lastAckLost struct {
	*udp.Conn
	ack, end atomic.Bool
}

// SendHeader implements mpe.Transport.
func (l *lastAckLost) SendHeader(peer int, header []byte) error {
	if h, defect := protocol.CloudFPGA.Parse(header); defect.OK() && h.Type == protocol.Ack && l.ack.Swap(false) {
		return nil
	}
	return l.Conn.SendHeader(peer, header)
}

// SendPackets implements mpe.Transport.
func (l *lastAckLost) SendPackets(peer int, packets []mpe.Packet) (int, error) {
	for i := range packets {
		h, _, defect := protocol.ParseExtendedHeader(packets[i].Header[:])
		if defect.OK() && (h.Type == protocol.Ack && l.ack.Swap(false) ||
			h.Type == protocol.Error && l.end.Swap(false)) {
			return len(packets), nil
		}
	}
	return l.Conn.SendPackets(peer, packets)
}

// TestLastAckLost checks that a send succeeds even if its ACK is lost and the receiver closes as soon as it has
// received the message.
func TestLastAckLost(t *testing.T) {
	for _, profile := range []string{"cloudfpga", "v0.9", "extended"} {
		t.Run(profile, func(t *testing.T) {
			p := newPlace(t)
			text := fmt.Sprintf("defaults: {profile: %s, transport: udp}\nranks:\n", profile)
			for r := range 2 {
				text += fmt.Sprintf("- {rank: %d, address: %s%d, run: host}\n", r, p, r+1)
			}
			cfg, err := config.Parse(strings.NewReader(text), "linger")
			if err != nil {
				t.Fatal(err)
			}
			engines := make([]*mpe.Engine, 2)
			sockets := make([]*lastAckLost, 2)
			for r := range engines {
				sockets[r] = new(lastAckLost)
				engines[r] = engineOn(t, cfg, r, sockets[r])
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			message := func(from int) (sent chan error) {
				sent = make(chan error, 1)
				go func() {
					out, err := engines[from].Start(mpe.Operation{Kind: mpe.OpSendSync, Peer: 1 - from,
						Buf: make([]byte, 4000)})
					if err == nil {
						_, err = out.Await(ctx)
					}
					sent <- err
				}()
				if _, err := engines[1-from].Recv(ctx, from, make([]byte, 4000), mpe.Options{}); err != nil {
					t.Fatal(err)
				}
				return sent
			}
			for from := range 2 { // introduce the ranks to each other
				if err := <-message(from); err != nil {
					t.Fatal(err)
				}
			}
			sockets[1].ack.Store(true)
			sockets[1].end.Store(true)
			sent := message(0)
			if err := engines[1].Close(ctx); err != nil {
				t.Error(err)
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
			if sockets[1].ack.Load() {
				t.Error("no ACK was lost")
			}
		})
	}
}

// engineOn returns the engine of a configured rank that sends through the given socket.
func engineOn(t *testing.T, cfg *config.Config, rank int, socket *lastAckLost) *mpe.Engine {
	t.Helper()
	plan, err := node.Plan(cfg, cfg.Rank(rank))
	if err != nil {
		t.Fatal(err)
	}
	if socket.Conn, err = udp.Listen(udp.Config{Rank: rank, Map: mapOf(t, cfg),
		Large: func(int) bool { return true }}); err != nil {
		t.Fatal(err)
	}
	peers := make([]mpe.Peer, len(cfg.Ranks))
	for i, l := range plan.Links() {
		l.Handshake.SameHost = false // the socket loses datagrams
		peers[i] = mpe.Peer{Handshake: l.Handshake, Extended: l.Extended, Transport: socket}
	}
	e, err := mpe.New(mpe.Config{Rank: rank, Peers: peers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(ended()) })
	return e
}
