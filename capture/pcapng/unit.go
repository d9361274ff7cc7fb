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
	// Trail is where the packet was seen, of a unit that several recordings were joined for; otherwise nil.
	Trail *Trail
}

// Trail is the way of a packet past the vantage points of several recordings. It is valid until the next unit is read.
type Trail struct {
	// Seen has the recordings in which the packet is, in the order of time.
	Seen []Sighting
	Fate Fate
	// From and To are the recordings between which the packet was lost, or was copied.
	From, To string
}

// Sighting is a packet in one of several recordings.
type Sighting struct {
	// Recording is the name of the file, and Packet the number of the packet there.
	Recording string
	Packet    int64
	// Time is that of the file, on the clock of the first recording.
	Time time.Time
}

// Fate says what became of a packet between vantage points, as far as recordings show it.
type Fate uint8

// The fates of packets.
const (
	// FateUnknown: the packet passes one vantage point only, or another one may not have recorded it.
	FateUnknown Fate = iota
	// Delivered: it was seen at all vantage points of its path.
	Delivered
	// Lost: it was seen at one vantage point, and not at the next one, which recorded others before and after.
	Lost
	// Copied: it was seen at one vantage point and not at the one before, where the packet that it is a copy of had
	// been seen earlier.
	Copied
)

// String returns "", "delivered", "lost" or "copied".
func (f Fate) String() string { return [...]string{"", "delivered", "lost", "copied"}[f] }

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
