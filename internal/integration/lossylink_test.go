package integration_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/udp"
)

// lossyLink is a host's socket that loses packets of the cloudfpga profile in both directions, to the extent that
// deployed FPGAs tolerate. It never loses ACKs of FPGAs, which acknowledge only once. FPGAs retransmit at most three
// times per message, so it loses at most two packets of each message.
type lossyLink struct {
	mpe.HandshakeTransport
	mu   sync.Mutex
	rng  *rand.Rand
	safe []int // for each peer, the number of packets that must pass before the next loss
	lost int
}

const (
	lossRate = 0.05
	// safePackets is twice the number of packets of a message, for the packets and one retransmission of each.
	safePackets = 8
)

// loses reports whether to lose a packet from or to a peer.
func (l *lossyLink) loses(peer int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.safe[peer] > 0 {
		l.safe[peer]--
		return false
	}
	if l.rng.Float64() >= lossRate {
		return false
	}
	l.safe[peer] = safePackets
	l.lost++
	return true
}

// losses returns the number of lost packets.
func (l *lossyLink) losses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// SendHeader implements mpe.Transport.
func (l *lossyLink) SendHeader(peer int, header []byte) error {
	if l.loses(peer) {
		return nil
	}
	return l.HandshakeTransport.SendHeader(peer, header)
}

// SendData implements mpe.Transport.
func (l *lossyLink) SendData(peer int, header, payload []byte, shape protocol.Shape) error {
	if l.loses(peer) {
		return nil
	}
	return l.HandshakeTransport.SendData(peer, header, payload, shape)
}

// Recv implements mpe.Transport.
func (l *lossyLink) Recv(batch []mpe.RxPacket) (int, error) {
	for {
		n, err := l.HandshakeTransport.Recv(batch)
		if err != nil {
			return n, err
		}
		kept := 0
		for _, a := range batch[:n] {
			h, _ := protocol.CloudFPGA.Parse(a.Bytes)
			if h.Type != protocol.Ack && l.loses(a.Peer) {
				continue
			}
			batch[kept] = a
			kept++
		}
		if kept > 0 {
			return kept, nil
		}
	}
}

// lossyWorlds opens ranks like worldsWithFPGAs, with rank 0 as the host, which has a lossy link to all other ranks. All
// timeouts are as on deployed nodes.
func lossyWorlds(t *testing.T, l layout, seed uint64) ([]*mpi.Comm, *lossyLink) {
	t.Helper()
	cfg := fpgaConfig(t, l, "", "")
	link := &lossyLink{rng: rand.New(rand.NewPCG(seed, 5)), safe: make([]int, l.ranks)}
	worlds := []*mpi.Comm{lossyHost(t, cfg, link)}
	for i := 1; i < l.ranks; i++ {
		worlds = append(worlds, openRank(t, cfg, i, deployed))
	}
	return worlds, link
}

func lossyHost(t *testing.T, cfg *config.Config, link *lossyLink) *mpi.Comm {
	t.Helper()
	plan, err := node.Plan(cfg, cfg.Rank(0))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := udp.Listen(udp.Config{Rank: 0, Map: mapOf(t, cfg)})
	if err != nil {
		t.Fatal(err)
	}
	link.HandshakeTransport = conn
	peers := make([]mpe.Peer, len(cfg.Ranks))
	for i, l := range plan.Links() {
		remote := cfg.Rank(i)
		peers[i] = mpe.Peer{Handshake: l.Handshake, Transport: link, Kind: remote.Peer,
			Address: remote.Address.String()}
	}
	collectives, err := node.Collectives(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mpe.New(mpe.Config{Rank: 0, Peers: peers, Collectives: collectives})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(ended()) })
	return worldOf(t, e)
}
