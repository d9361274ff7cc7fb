package memnet

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// Hook decides the fate of one datagram from rank from to rank to. The network delivers the datagram once for each
// duration that Hook returns, after that delay: it drops the datagram if Hook returns none, and delivers it twice if
// Hook returns two. Datagrams that are due at the same time arrive in the order in which they were sent. An equal delay
// for all datagrams therefore keeps their order, and a delay for only some of them reorders them.
//
// b is the network's own copy; a Hook may change it to corrupt the datagram. Hooks run one at a time and must not call
// methods of the Net.
type Hook func(from, to int, b []byte) (deliveries []time.Duration)

// Net is a network of ranks.
type Net struct {
	mu         sync.Mutex
	hook       Hook
	transports []*transport
	delayed    impair.Queue[delivery]
}

// delivery is a datagram in flight.
type delivery struct {
	to       int
	datagram mpe.RxPacket
}

// New returns a network with the given number of ranks. No rank is bound yet.
func New(ranks int) *Net { return &Net{transports: make([]*transport, ranks)} }

// SetHook sets the Hook for all datagrams sent from now on. If h is nil, they are delivered at once.
func (n *Net) SetHook(h Hook) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hook = h
}

// Transport is one rank's end of a Net. It carries the packets of all profiles.
type Transport interface {
	mpe.HandshakeTransport
	SendPackets(peer int, packets []mpe.Packet) (int, error)
}

// Transport binds a rank and returns its end of the network. Datagrams to a rank are lost before it is bound,
// and after its transport is closed. Binding a rank again models a restart: the rank's previous transport
// receives nothing more.
func (n *Net) Transport(rank int) Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := &transport{net: n, rank: rank}
	t.wake.L = &n.mu
	n.transports[rank] = t
	return t
}

// Addr returns the source address of packets from rank.
func Addr(rank int) netip.AddrPort {
	const perByte = 250
	a := netip.AddrFrom4([4]byte{127, 27, byte(rank / perByte), byte(rank%perByte + 1)})
	return netip.AddrPortFrom(a, protocol.Port)
}

// Inject delivers a datagram to rank to at once, bypassing the Hook, as if rank from had sent it. If from is
// mpe.UnknownPeer, the source address is not in any rank map.
func (n *Net) Inject(from, to int, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deliver(to, newRxPacket(from, slices.Clone(b)))
}

func newRxPacket(from int, b []byte) mpe.RxPacket {
	a := mpe.RxPacket{Kind: mpe.RxDatagram, Peer: from, SourceAddr: netip.MustParseAddrPort("127.99.0.1:2718"), Bytes: b}
	if from != mpe.UnknownPeer {
		a.SourceAddr = Addr(from)
	}
	return a
}

// send sends a datagram. The caller holds n.mu. The network takes ownership of b.
func (n *Net) send(from, to int, b []byte) {
	deliveries := []time.Duration{0}
	if n.hook != nil {
		deliveries = n.hook(from, to, b)
	}
	for _, d := range deliveries {
		if d <= 0 {
			n.deliver(to, newRxPacket(from, b))
			continue
		}
		n.delayed.Push(time.Now().Add(d), delivery{to, newRxPacket(from, b)})
		time.AfterFunc(d, n.deliverLate)
	}
}

// deliverLate delivers all datagrams that are due.
func (n *Net) deliverLate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for x, ok := n.delayed.Pop(now); ok; x, ok = n.delayed.Pop(now) {
		n.deliver(x.to, x.datagram)
	}
}

// deliver queues a datagram for its receiver, if the receiver is bound.
func (n *Net) deliver(to int, a mpe.RxPacket) {
	if t := n.transports[to]; t != nil {
		t.queue = append(t.queue, a)
		t.wake.Signal()
	}
}

// checkRank returns an error if rank to does not exist in the network.
func (n *Net) checkRank(to int) error {
	if to < 0 || to >= len(n.transports) {
		return fmt.Errorf("memnet: rank %d does not exist: the network has ranks 0 to %d", to, len(n.transports)-1)
	}
	return nil
}
