package capture

import (
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxIdentities bounds what is remembered of who is who.
const maxIdentities = 1 << 16

// identities know which address speaks for which rank. Ranks of several clusters
// in one recording are distinguished by their peers.
type identities struct {
	addrs map[rankAt]netip.AddrPort
	ranks map[netip.AddrPort]uint32
	// pads and headerless are the packets of the first message of an odd number of
	// words that an address sent with padding, and without.
	pads, headerless map[netip.AddrPort]int64
	reported         map[netip.AddrPort]bool
	// insists has the addresses that go on sending SEND_REQUEST again, which no
	// deployed node does.
	insists map[netip.AddrPort]bool
}

// rankAt is a rank as one address knows it.
type rankAt struct {
	at   netip.AddrPort
	rank uint32
}

func newIdentities() identities {
	return identities{
		addrs: map[rankAt]netip.AddrPort{}, ranks: map[netip.AddrPort]uint32{},
		pads: map[netip.AddrPort]int64{}, headerless: map[netip.AddrPort]int64{}, reported: map[netip.AddrPort]bool{},
		insists: map[netip.AddrPort]bool{},
	}
}

// address is where the rank is, as the address at knows it.
func (i *identities) address(rank uint32, at netip.AddrPort) netip.AddrPort {
	return i.addrs[rankAt{at, rank}]
}

// identify checks that a header's source rank comes from the address that it
// always came from. If the rank is known by another address, it returns the
// conversation with that one.
func (t *Tracker) identify(e *Event) *conversation {
	if len(t.ranks.addrs) > maxIdentities {
		return nil
	}
	key := rankAt{e.Dst, e.Header.Src}
	known, ok := t.ranks.addrs[key]
	rank, spoke := t.ranks.ranks[e.Src]
	switch {
	case ok && known != e.Src:
		t.find(WrongSource, e, "%v came from %v, but rank %d is at %v: an FPGA drops it, and the rank maps of the nodes differ", e.Header, e.Src, e.Header.Src, known)
		a, b := known, e.Dst
		if a.Compare(b) > 0 {
			a, b = b, a
		}
		return t.convs[convKey{a, b}]
	case spoke && rank != e.Header.Src:
		t.find(WrongSource, e, "%v came from %v, which has spoken for rank %d before", e.Header, e.Src, rank)
		return nil
	}
	if !ok {
		t.ranks.addrs[key] = e.Src
	}
	if !spoke {
		t.ranks.ranks[e.Src] = e.Header.Src
	}
	return nil
}

// padding notes whether an address pads its payload to lines of 8 bytes. An FPGA
// always does, and no other node: check an address that does both.
func (t *Tracker) padding(from netip.AddrPort, m *message, e *Event) {
	if m.Words%2 == 0 && m.Words != 0 || t.ranks.reported[from] || e.Proto == TCP {
		return
	}
	seen := t.ranks.headerless
	if e.Padding > 0 {
		seen = t.ranks.pads
	}
	if _, ok := seen[from]; !ok && len(seen) < maxIdentities {
		seen[from] = e.Packet
	}
	padded, p := t.ranks.pads[from]
	bare, b := t.ranks.headerless[from]
	if p && b {
		t.ranks.reported[from] = true
		t.find(Padding, e, "rank %d pads some of its messages to whole lines of %d bytes and others not: an FPGA pads all of them, other nodes none", m.Src, protocol.LineLen).
			about(m, padded, bare)
	}
}

// retransmitted notes that an address has sent a SEND_REQUEST n times more. One more
// than deployed nodes send may be the first of a program that was started again.
func (i *identities) retransmitted(from netip.AddrPort, n int) {
	if n > deployedRetransmissions+1 && len(i.insists) < maxIdentities {
		i.insists[from] = true
	}
}

// isFPGA reports whether the node at an address pads as the MPE does.
func (i *identities) isFPGA(at netip.AddrPort) bool {
	_, pads := i.pads[at]
	return pads
}

// mayBeFPGA reports whether nothing shows that the node at an address is no FPGA: that
// has one port, pads all it sends, and stops sending SEND_REQUESTs again.
func (i *identities) mayBeFPGA(at netip.AddrPort) bool {
	_, bare := i.headerless[at]
	return at.Port() == protocol.Port && !bare && !i.insists[at]
}

// mayBeLibrary reports whether the node at an address may run upstream's CPU library.
func (i *identities) mayBeLibrary(at netip.AddrPort) bool {
	return !i.isFPGA(at) && !i.insists[at]
}

// harm says what a second DATA header or datagram of a fragmented message does at its
// receiver, as far as it may be a deployed node: it takes what it does not expect for
// the next part. when is the condition for that, and inTime a further one for upstream's
// CPU library.
func (f *flow) harm(m *message, when, what, inTime string) string {
	ids, at := &f.t.ranks, f.to
	fpga := fmt.Sprintf("stores %s as payload and acknowledges corrupt data, and the next message may be corrupt too (trap 4)", what)
	library := fmt.Sprintf("stores %s as payload, and acknowledges wrong words or crashes%s", what, inTime)
	switch {
	case ids.isFPGA(at):
		return fmt.Sprintf(": %srank %d, which pads as an FPGA does, %s", when, m.Dst, fpga)
	case ids.mayBeFPGA(at):
		return fmt.Sprintf(": %san FPGA %s; upstream's CPU library %s; rank %d may be either", when, fpga, library, m.Dst)
	case ids.mayBeLibrary(at):
		return fmt.Sprintf(": %supstream's CPU library, which rank %d may run, %s", when, m.Dst, library)
	}
	return ""
}
