package pcapng

import (
	"net/netip"
	"time"
)

// Unit is one piece of transport payload, in the order of the recording: a UDP
// datagram, reassembled from IP fragments if need be, or the next bytes of one
// direction of a TCP connection.
type Unit struct {
	// Packet is the number of the recorded packet that completed the unit,
	// counted from 1 as Wireshark does.
	Packet int64
	// Time is that packet's time stamp.
	Time time.Time
	// Src and Dst are the innermost addresses: inside a VXLAN, not around it.
	Src, Dst netip.AddrPort
	// Proto is UDP or TCP.
	Proto Proto
	// Data is the payload. It is valid until the next call of Next.
	Data []byte
	// Truncated is how many bytes of the payload were on the wire but are
	// not in the file, because it was recorded with a short snapshot length.
	Truncated int
	// Fragments is how many IP fragments it came in, or 0, and Fragment the length of the longest one in bytes, without
	// the IP header.
	Fragments, Fragment int
	// Gap is how many bytes of a TCP stream are missing before Data.
	Gap int
	// Restart is true for the first unit of a TCP direction: what was
	// pending of an earlier connection between the same addresses is void.
	Restart bool
	// Comments are those that the recording has for the packet, or is to have.
	Comments []string
}

// Wire returns the length in bytes of the unit on the wire, recorded or not.
func (u *Unit) Wire() int { return len(u.Data) + u.Truncated }

// Proto is a transport protocol.
type Proto uint8

// The transport protocols that carry ZRLMPI.
const (
	UDP Proto = iota + 1
	TCP
)

// String returns "udp" or "tcp".
func (p Proto) String() string {
	if p == TCP {
		return "tcp"
	}
	return "udp"
}
