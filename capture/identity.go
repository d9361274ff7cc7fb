package capture

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxIdentities is the maximum number of addresses, and of ranks, that a Tracker remembers.
const maxIdentities = 1 << 16

// identities maps ranks to addresses. A recording may show several clusters, in which the address of a peer
// distinguishes equal ranks.
type identities struct {
	addrs map[rankKey]netip.AddrPort
	nodes map[netip.AddrPort]*identity
}

// identity describes the node at an address.
type identity struct {
	// sourceRank is the source rank in the node's packets. It is valid if hasSent is true.
	sourceRank uint32
	hasSent    bool
	// addressedAs is the destination rank in the first packet sent to the node. It is valid if wasAddressed is true.
	addressedAs  uint32
	wasAddressed bool
	// misaddressed is true if a packet to the node named a rank other than the node's own.
	misaddressed bool
	// Among messages with no words or an odd number of words, firstPadded is the number of the first packet with
	// padding from the node, and firstUnpadded of the first one without padding. 0 means no such packet.
	firstPadded, firstUnpadded int64
	paddingReported            bool
	// keepsRequesting is true if the node keeps retransmitting SEND_REQUEST, which no deployed node does.
	keepsRequesting bool
}

// rankKey identifies a rank as seen by the node at address viewer.
type rankKey struct {
	viewer netip.AddrPort
	rank   uint32
}

func newIdentities() identities {
	return identities{addrs: map[rankKey]netip.AddrPort{}, nodes: map[netip.AddrPort]*identity{}}
}

// node returns what is known about the node at an address.
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

// address returns the address that a rank has for the node at address at. It returns the zero AddrPort if the address
// is unknown.
func (i *identities) address(rank uint32, at netip.AddrPort) netip.AddrPort {
	return i.addrs[rankKey{at, rank}]
}

// checkRanks checks that the source rank of a header has the same address as before, and that the node at the
// destination address uses the destination rank. If the source rank has another known address, checkRanks returns the
// conversation with that address.
func (t *Tracker) checkRanks(event *Event, from, to *flow) *conversation {
	if len(t.ranks.addrs) > maxIdentities {
		return nil
	}
	n, peer := from.node, to.node
	if !peer.wasAddressed {
		peer.addressedAs, peer.wasAddressed = event.Header.Dst, true
	}
	t.checkRank(event, peer, event.Header.Dst, event.Dst)
	key := rankKey{event.Dst, event.Header.Src}
	known, ok := t.ranks.addrs[key]
	switch {
	case ok && known != event.Src:
		t.addFinding(WrongSource, event, "%v came from %v, but rank %d is at %v: an FPGA drops it, and the rank maps of the "+
			"nodes differ", event.Header, event.Src, event.Header.Src, known)
		a, b := known, event.Dst
		if a.Compare(b) > 0 {
			a, b = b, a
		}
		return t.convs[convKey{a, b}]
	case n.hasSent && n.sourceRank != event.Header.Src:
		t.addFinding(WrongSource, event, "%v came from %v, which has spoken for rank %d before", event.Header, event.Src,
			n.sourceRank)
		return nil
	}
	if !ok {
		t.ranks.addrs[key] = event.Src
	}
	n.sourceRank, n.hasSent = event.Header.Src, true
	t.checkRank(event, n, n.addressedAs, event.Src)
	return nil
}

// checkRank reports packets that name a destination rank other than the rank of the node they are sent to. It reports
// each node only once.
func (t *Tracker) checkRank(e *Event, n *identity, named uint32, at netip.AddrPort) {
	if n.misaddressed || !n.hasSent || !n.wasAddressed || n.sourceRank == named {
		return
	}
	n.misaddressed = true
	t.addFinding(WrongDestination, e, "packets to %v are for rank %d, and those from %v are of rank %d: the rank maps "+
		"of the nodes differ, "+
		"or the node has become another rank", at, named, at, n.sourceRank)
}

// checkPadding records whether the node at an address pads its payload to lines of 8 bytes. FPGAs always pad and other
// nodes never do, so checkPadding reports a node that does both.
func (t *Tracker) checkPadding(from netip.AddrPort, msg *message, event *Event) {
	n := t.ranks.node(from)
	if msg.Words%2 == 0 && msg.Words != 0 || n.paddingReported || event.Proto == pcapng.TCP {
		return
	}
	seen := &n.firstUnpadded
	if event.Padding > 0 {
		seen = &n.firstPadded
	}
	*seen = cmp.Or(*seen, event.Packet)
	if n.firstPadded != 0 && n.firstUnpadded != 0 {
		n.paddingReported = true
		t.addFinding(MixedPadding, event,
			"rank %d pads some of its messages to whole lines of %d bytes and others not: an FPGA "+
				"pads all of them, other nodes none", msg.Src, protocol.LineLen).
			relateTo(msg, n.firstPadded, n.firstUnpadded)
	}
}

// recordRetransmits records that the node at an address retransmitted a SEND_REQUEST n times. It ignores a single
// retransmission more than a deployed node sends, which may be the first SEND_REQUEST of a restarted program.
func (i *identities) recordRetransmits(from netip.AddrPort, n int) {
	if n > deployedRetransmissions+1 {
		i.node(from).keepsRequesting = true
	}
}

// isFPGA reports whether the node at an address pads its payload, as only the MPE of an FPGA does.
func (i *identities) isFPGA(at netip.AddrPort) bool { return i.node(at).firstPadded != 0 }

// harmText describes the damage that a second DATA header, or a copy of a datagram, does to a fragmented message: a
// deployed receiver stores the bytes as the next part of the message. what names the stored bytes, when is the
// condition of the damage, and inTime is a further condition for upstream's CPU library.
func (f *flow) harmText(msg *message, when, what, inTime string) string {
	n := f.tracker.ranks.node(f.to)
	fpga := fmt.Sprintf("stores %s as payload and acknowledges corrupt data, and the next message may be corrupt "+
		"too (trap 4)", what)
	library := fmt.Sprintf("stores %s as payload, and acknowledges wrong words or crashes%s", what, inTime)
	switch {
	case n.firstPadded != 0:
		return fmt.Sprintf(": %srank %d, which pads as an FPGA does, %s", when, msg.Dst, fpga)
	case f.to.Port() == protocol.Port && n.firstUnpadded == 0 && !n.keepsRequesting: // like an FPGA
		return fmt.Sprintf(": %san FPGA %s; upstream's CPU library %s; rank %d may be either", when, fpga, library,
			msg.Dst)
	case !n.keepsRequesting:
		return fmt.Sprintf(": %supstream's CPU library, which rank %d may run, %s", when, msg.Dst, library)
	}
	return ""
}
