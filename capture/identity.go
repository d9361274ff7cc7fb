package capture

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxIdentities bounds what is remembered of who is who.
const maxIdentities = 1 << 16

// identities know which address speaks for which rank. Ranks of several clusters
// in one recording are distinguished by their peers.
type identities struct {
	addrs map[rankAt]netip.AddrPort
	nodes map[netip.AddrPort]*identity
}

// identity is what is known of the node at an address.
type identity struct {
	// rank is the one it speaks for, once it spoke.
	rank  uint32
	spoke bool
	// named is the rank by which the first packet to it calls it, if called.
	named  uint32
	called bool
	// misnamed: a packet has called it another rank than it speaks for.
	misnamed bool
	// pads and headerless are the packets of the first message of an odd number of
	// words that it sent with padding, and without; 0 before.
	pads, headerless int64
	reported         bool
	// insists: it goes on sending SEND_REQUEST again, which no deployed node does.
	insists bool
}

// rankAt is a rank as one address knows it.
type rankAt struct {
	at   netip.AddrPort
	rank uint32
}

func newIdentities() identities {
	return identities{addrs: map[rankAt]netip.AddrPort{}, nodes: map[netip.AddrPort]*identity{}}
}

// node returns what is known of the node at an address.
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

// address is where the rank is, as the address at knows it.
func (i *identities) address(rank uint32, at netip.AddrPort) netip.AddrPort {
	return i.addrs[rankAt{at, rank}]
}

// identify checks that a header's source rank comes from the address that it always came from, and that its
// destination is the rank that speaks from there. If the source is known by another address, it returns the
// conversation with that one.
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
		t.find(WrongSource, e, "%v came from %v, but rank %d is at %v: an FPGA drops it, and the rank maps of the nodes differ", e.Header, e.Src, e.Header.Src, known)
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

// checkName reports, once for each node, that packets call it another rank than it speaks for.
func (t *Tracker) checkName(e *Event, n *identity, named uint32, at netip.AddrPort) {
	if n.misnamed || !n.spoke || !n.called || n.rank == named {
		return
	}
	n.misnamed = true
	t.find(WrongDestination, e, "packets to %v are for rank %d, and those from %v are of rank %d: the rank maps "+
		"of the nodes differ, "+
		"or the node has become another rank", at, named, at, n.rank)
}

// padding notes whether an address pads its payload to lines of 8 bytes. An FPGA
// always does, and no other node: check an address that does both.
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
		t.find(Padding, e, "rank %d pads some of its messages to whole lines of %d bytes and others not: an FPGA pads all of them, other nodes none", m.Src, protocol.LineLen).
			about(m, n.pads, n.headerless)
	}
}

// retransmitted notes that an address has sent a SEND_REQUEST n times more. One more
// than deployed nodes send may be the first of a program that was started again.
func (i *identities) retransmitted(from netip.AddrPort, n int) {
	if n > deployedRetransmissions+1 {
		i.node(from).insists = true
	}
}

// isFPGA reports whether the node at an address pads as the MPE does.
func (i *identities) isFPGA(at netip.AddrPort) bool { return i.node(at).pads != 0 }

// harm says what a second DATA header or datagram of a fragmented message does at its
// receiver, as far as it may be a deployed node: it takes what it does not expect for
// the next part. when is the condition for that, and inTime a further one for upstream's
// CPU library.
func (f *flow) harm(m *message, when, what, inTime string) string {
	n := f.t.ranks.node(f.to)
	fpga := fmt.Sprintf("stores %s as payload and acknowledges corrupt data, and the next message may be corrupt too (trap 4)", what)
	library := fmt.Sprintf("stores %s as payload, and acknowledges wrong words or crashes%s", what, inTime)
	switch {
	case n.pads != 0:
		return fmt.Sprintf(": %srank %d, which pads as an FPGA does, %s", when, m.Dst, fpga)
	case f.to.Port() == protocol.Port && n.headerless == 0 && !n.insists: // what an FPGA does
		return fmt.Sprintf(": %san FPGA %s; upstream's CPU library %s; rank %d may be either", when, fpga, library, m.Dst)
	case !n.insists:
		return fmt.Sprintf(": %supstream's CPU library, which rank %d may run, %s", when, m.Dst, library)
	}
	return ""
}
