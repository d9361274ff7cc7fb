package capture

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxIdentities is the maximum number of addresses and ranks remembered.
const maxIdentities = 1 << 16

// identities maps ranks to addresses. A recording may show several clusters; equal ranks are distinguished by the
// address of their peer.
type identities struct {
	addrs map[rankAt]netip.AddrPort
	nodes map[netip.AddrPort]*identity
}

// identity describes the node at an address.
type identity struct {
	// rank is the source rank in the node's packets. It is valid if spoke is true.
	rank  uint32
	spoke bool
	// named is the destination rank in the first packet to the node. It is valid if called is true.
	named  uint32
	called bool
	// misnamed is true if a packet to the node named a rank other than the node's own.
	misnamed bool
	// pads is the number of the first packet in which the node padded a message with an odd number of words or none.
	// headerless is the number of the first packet in which it did not pad such a message. Each is 0 if there is no
	// such packet.
	pads, headerless int64
	reported         bool
	// insists is true if the node keeps retransmitting SEND_REQUEST, which no deployed node does.
	insists bool
}

// rankAt is a rank as seen by one address.
type rankAt struct {
	at   netip.AddrPort
	rank uint32
}

func newIdentities() identities {
	return identities{addrs: map[rankAt]netip.AddrPort{}, nodes: map[netip.AddrPort]*identity{}}
}

// node returns the identity of the node at an address.
func (i *identities) node(at netip.AddrPort) *identity {
	n := i.nodes[at]
	if n == nil {
		n = &identity{}
		if len(i.nodes) < maxIdentities {
			i.nodes[at] = n
		}
	}
	return n
}

// address returns the address of a rank with which the node at address at communicates.
func (i *identities) address(rank uint32, at netip.AddrPort) netip.AddrPort {
	return i.addrs[rankAt{at, rank}]
}

// identify checks that the source rank of a header has the same address as before, and that the node at the destination
// address uses the destination rank. If the source rank has another known address, identify returns the conversation
// with that address.
func (t *Tracker) identify(e *Event, from, to *flow) *conversation {
	if len(t.ranks.addrs) > maxIdentities {
		return nil
	}
	n, peer := from.node, to.node
	if !peer.called {
		peer.named, peer.called = e.Header.Dst, true
	}
	t.checkName(e, peer, e.Header.Dst, e.Dst)
	key := rankAt{e.Dst, e.Header.Src}
	known, ok := t.ranks.addrs[key]
	switch {
	case ok && known != e.Src:
		t.find(WrongSource, e, "%v came from %v, but rank %d is at %v: an FPGA drops it, and the rank maps of the "+
			"nodes differ", e.Header, e.Src, e.Header.Src, known)
		a, b := known, e.Dst
		if a.Compare(b) > 0 {
			a, b = b, a
		}
		return t.convs[convKey{a, b}]
	case n.spoke && n.rank != e.Header.Src:
		t.find(WrongSource, e, "%v came from %v, which has spoken for rank %d before", e.Header, e.Src, n.rank)
		return nil
	}
	if !ok {
		t.ranks.addrs[key] = e.Src
	}
	n.rank, n.spoke = e.Header.Src, true
	t.checkName(e, n, n.named, e.Src)
	return nil
}

// checkName reports, once for each node, that packets sent to it name a rank other than its own.
func (t *Tracker) checkName(e *Event, n *identity, named uint32, at netip.AddrPort) {
	if n.misnamed || !n.spoke || !n.called || n.rank == named {
		return
	}
	n.misnamed = true
	t.find(WrongDestination, e, "packets to %v are for rank %d, and those from %v are of rank %d: the rank maps "+
		"of the nodes differ, "+
		"or the node has become another rank", at, named, at, n.rank)
}

// padding records whether an address pads its payload to lines of 8 bytes. FPGAs always do and other nodes never do, so
// padding reports an address that sends both forms.
func (t *Tracker) padding(from netip.AddrPort, m *message, e *Event) {
	n := t.ranks.node(from)
	if m.Words%2 == 0 && m.Words != 0 || n.reported || e.Proto == pcapng.TCP {
		return
	}
	seen := &n.headerless
	if e.Padding > 0 {
		seen = &n.pads
	}
	*seen = cmp.Or(*seen, e.Packet)
	if n.pads != 0 && n.headerless != 0 {
		n.reported = true
		t.find(Padding, e, "rank %d pads some of its messages to whole lines of %d bytes and others not: an FPGA "+
			"pads all of them, other nodes none", m.Src, protocol.LineLen).
			about(m, n.pads, n.headerless)
	}
}

// retransmitted records that an address has retransmitted a SEND_REQUEST n times. If n exceeds the number that deployed
// nodes send by only one, the last one may be the first SEND_REQUEST of a restarted program.
func (i *identities) retransmitted(from netip.AddrPort, n int) {
	if n > deployedRetransmissions+1 {
		i.node(from).insists = true
	}
}

// isFPGA reports whether the node at an address pads its payload as the MPE does.
func (i *identities) isFPGA(at netip.AddrPort) bool { return i.node(at).pads != 0 }

// harm describes the damage that a second DATA header or a second copy of a fragmented message's datagram does at the
// receiver. A deployed node stores it as the next part of the message. when is the condition under which this happens;
// inTime is a further condition for upstream's CPU library.
func (f *flow) harm(m *message, when, what, inTime string) string {
	n := f.t.ranks.node(f.to)
	fpga := fmt.Sprintf("stores %s as payload and acknowledges corrupt data, and the next message may be corrupt "+
		"too (trap 4)", what)
	library := fmt.Sprintf("stores %s as payload, and acknowledges wrong words or crashes%s", what, inTime)
	switch {
	case n.pads != 0:
		return fmt.Sprintf(": %srank %d, which pads as an FPGA does, %s", when, m.Dst, fpga)
	case f.to.Port() == protocol.Port && n.headerless == 0 && !n.insists: // like an FPGA
		return fmt.Sprintf(": %san FPGA %s; upstream's CPU library %s; rank %d may be either", when, fpga, library,
			m.Dst)
	case !n.insists:
		return fmt.Sprintf(": %supstream's CPU library, which rank %d may run, %s", when, m.Dst, library)
	}
	return ""
}
