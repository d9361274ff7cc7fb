package core

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// RxPacket is one thing that the network brought.
type RxPacket struct {
	Kind RxKind
	// Peer is the rank that the rank map gives for the source address, or
	// UnknownPeer.
	Peer int
	// From is the source address.
	From netip.AddrPort
	// Bytes are the datagram (RxDatagram), a header (RxHeader) or
	// a piece of a DATA message's payload (RxPayload).
	Bytes []byte
	// Rest is the rest of a datagram whose beginning is Bytes, if it is not in
	// one piece; and if Each is not 0, Bytes are several datagrams of so many
	// bytes each, of which the last may be shorter.
	Rest []byte
	Each int
	// Away, if not 0, is how many bytes of payload belong behind Bytes that are
	// still where their sender has them: Fetch gets them by Ticket
	// (a MemoryTransport).
	Away, Ticket int
	// Advertised, if not 0, says that Bytes announce a message that Get copies
	// by that number (a MemoryTransport).
	Advertised uint64
	// Checked: Bytes and Rest are a packet of the extended profile, and the transport has
	// found it good for protocol.ParseExtended. To check it again would take as
	// long as to copy it. If there is a Rest, Bytes are the header.
	Checked bool
}

// UnknownPeer is the Peer of an RxPacket whose source address is not in the rank
// map.
const UnknownPeer = -1

// RxKind says how an RxPacket's bytes are to be read.
type RxKind uint8

const (
	// RxDatagram: a UDP datagram, of which only the pair's state says
	// whether it starts with a header.
	RxDatagram RxKind = iota
	// RxHeader and RxPayload: pieces of a stream, separated
	// by its framing.
	RxHeader
	RxPayload
	// RxConnected: a connection to the peer was made anew; what was
	// under way on the old one is lost.
	RxConnected
	// RxTruncated: a datagram longer than any that a peer may send. Its
	// bytes are cut off.
	RxTruncated
	// RxShort: a packet of the extended profile with a short header (a MemoryTransport).
	RxShort
	// RxBroken: a stream lost its framing and was closed.
	RxBroken
	// RxPublished: a SharedBuffers' Await of the slot Ticket has ended.
	RxPublished
	// RxGone: no process is the peer, of the extended profile, any more. Its last connection
	// has ended, and a new one was refused.
	RxGone
	// RxLeft is RxGone of a peer that has closed its transport before.
	RxLeft
	// RxUnreachable: the transport has no way to the peer, of the extended profile. Bytes are the
	// reason, a text. It comes again as long as that is so.
	RxUnreachable
)

// Packet is one packet of the extended profile to be sent: a header, and the
// payload that follows it.
type Packet struct {
	Header  [protocol.ExtHeaderLen]byte
	Payload []byte
	// Advertised, if not empty, is a message that the packet announces. It is for a
	// MemoryTransport, which may let the peer have it before it is asked for.
	Advertised []byte
	// Fragment: a network that would lose the packet for its length may fragment it. It must
	// not fragment others.
	Fragment bool
	// Exposed, if not 0, says that Payload and Advertised stay where and as they are until
	// Invalidate is called with that number: a MemoryTransport may leave them there.
	Exposed uint64
}

// Placement is memory for payload that is expected of a peer: where it belongs.
type Placement struct {
	// Peer is the rank that it is expected from.
	Peer int
	// Head is how many bytes of each datagram come before the payload.
	Head int
	// Message and Offset are what the header of the next packet says, of the extended
	// profile: the number of the message, and how much of it has arrived.
	Message, Offset uint32
	// Buf is where the payload of the next datagram belongs, and behind it
	// that of those which follow. All of it may be written to.
	Buf []byte
}

// Expects reports whether a header is that of the next packet of the extended profile.
func (at *Placement) Expects(h *protocol.ExtHeader) bool {
	return at.Head == protocol.ExtHeaderLen && h.Type == protocol.Data && h.Message == at.Message && h.Offset == at.Offset
}
