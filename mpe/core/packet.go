package core

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// RxPacket is a received packet, a part of one, or an event of the transport.
type RxPacket struct {
	Kind RxKind
	// Peer is the rank that the rank map assigns to the source address, or UnknownPeer.
	Peer int
	// SourceAddr is the source address.
	SourceAddr netip.AddrPort
	// Bytes are the datagram (RxDatagram), a header (RxHeader) or a piece of the payload of a DATA message
	// (RxPayload).
	Bytes []byte
	// Tail is the rest of a datagram that begins with Bytes, if the two are not contiguous in memory. A nonzero
	// DatagramLen means that Bytes are several datagrams of DatagramLen bytes each; the last one may be shorter.
	Tail        []byte
	DatagramLen int
	// RemoteBytes is the number of payload bytes that follow Bytes, but are still in the sender's memory. Fetch copies
	// them, and identifies them by Ticket (MemoryTransport only).
	RemoteBytes, Ticket int
	// Advertised, if not 0, is the number by which Get identifies the message that Bytes announce (MemoryTransport
	// only).
	Advertised uint64
	// Verified means that Bytes and Tail are a packet of the extended profile whose checksum the transport has already
	// verified for protocol.ParseExtended: verifying it again would take as long as copying the packet. If Tail is not
	// empty, Bytes are the header.
	Verified bool
}

// UnknownPeer is the value of RxPacket.Peer if the source address is not in the rank map.
const UnknownPeer = -1

// RxKind is the kind of an RxPacket, which determines the meaning of its bytes.
type RxKind uint8

const (
	// RxDatagram is a UDP datagram. Whether it starts with a header depends on the state of the pair.
	RxDatagram RxKind = iota
	// RxHeader and RxPayload are pieces of a stream, split at the boundaries of its framing.
	RxHeader
	RxPayload
	// RxConnected means that a new connection to the peer was made. Packets in flight on the old connection are lost.
	RxConnected
	// RxTruncated is a datagram longer than a peer may send. Bytes are only its beginning.
	RxTruncated
	// RxShort is a packet of the extended profile with a short header (MemoryTransport only).
	RxShort
	// RxBroken means that the transport refused a connection, or closed it because of the data received on it. Bytes
	// are the reason as text, or empty.
	RxBroken
	// RxPublished means that the wait that SharedBuffers.Await began for slot Ticket is over.
	RxPublished
	// RxPeerDied means that the process of an extended peer no longer exists: its last connection was closed, and a new
	// connection to it was refused.
	RxPeerDied
	// RxPeerClosed is like RxPeerDied, but for a peer that had closed its transport before its process ended.
	RxPeerClosed
	// RxUnreachable means that the transport cannot reach an extended peer. Bytes are the reason as text. The transport
	// renews the report while the reason persists.
	RxUnreachable
)

// Packet is an outgoing packet of the extended profile: a header, and the payload that follows it.
type Packet struct {
	Header  [protocol.ExtHeaderLen]byte
	Payload []byte
	// Advertised is the message that the packet announces, or empty. The peer of a MemoryTransport may read it without
	// requesting it.
	Advertised []byte
	// Fragment permits the network to fragment the packet if the packet exceeds the path MTU. The network must drop
	// such a packet if Fragment is not set.
	Fragment bool
	// Exposed, if not 0, promises that Payload and Advertised stay unchanged until the engine calls Invalidate with
	// this number, so that a MemoryTransport need not copy them.
	Exposed uint64
}

// Placement describes where to store payload that is expected from a peer.
type Placement struct {
	// Peer is the rank of the sender.
	Peer int
	// HeaderLen is the number of bytes before the payload in each datagram.
	HeaderLen int
	// Message and Offset are expected in the packet's header (extended profile only). They are the number of the
	// message, and the number of its bytes received so far.
	Message, Offset uint32
	// Buf is the destination of the payload of the next datagram and the datagrams after it. The transport may write to
	// all of Buf.
	Buf []byte
}

// MatchesHeader reports whether h is the header of the packet that the placement expects, in the extended profile.
func (at *Placement) MatchesHeader(h *protocol.ExtHeader) bool {
	return at.HeaderLen == protocol.ExtHeaderLen && h.Type == protocol.Data && h.Message == at.Message &&
		h.Offset == at.Offset
}
