package pcapng

import (
	"net/netip"
	"time"
)

// Unit is one piece of transport payload: a UDP datagram, reassembled from IP fragments if necessary, or the next
// bytes from one direction of a TCP connection.
type Unit struct {
	// Packet is the number of the recorded packet that completed the unit, counted from 1 as in Wireshark.
	Packet int64
	// Time is the time stamp of the packet that completed the unit.
	Time time.Time
	// Src and Dst are the innermost addresses. In a VXLAN, they are the addresses inside the tunnel.
	Src, Dst netip.AddrPort
	// Proto is UDP or TCP.
	Proto Proto
	// Data is the payload, valid until the next call of Next.
	Data []byte
	// Truncated is the number of payload bytes that the snapshot length cut off.
	Truncated int
	// Fragments is the number of IP fragments of the unit, or 0. LongestFragment is the length of the longest one in
	// bytes, without the IP header.
	Fragments, LongestFragment int
	// Gap is the number of bytes of a TCP stream missing before Data.
	Gap int
	// Restart is true for the first unit from one direction of a TCP connection. The reader must then discard pending
	// data from an earlier connection between the same addresses.
	Restart bool
	// Comments lists the comments on the packet, read from a recording or to be written to one.
	Comments []string
	// Trail lists the sightings of the packet in several joined recordings. It is nil for a single recording.
	Trail *Trail
}

// Trail describes the path of a packet past the vantage points of several recordings. It is valid until the next unit
// is read.
type Trail struct {
	// Sightings lists the recordings that contain the packet, in order of time.
	Sightings []Sighting
	Fate      Fate
	// From and To are the recordings between whose vantage points the packet was lost or copied.
	From, To string
}

// Sighting describes the appearance of a packet in one of several recordings.
type Sighting struct {
	// Recording is the name of the file. Packet is the number of the packet in that file.
	Recording string
	Packet    int64
	// Time is the time in the file, converted to the clock of the first recording.
	Time time.Time
}

// Fate describes whether a packet was delivered, lost or copied between vantage points, according to the recordings.
type Fate uint8

// Fates of a packet.
const (
	// FateUnknown: the packet passed only one vantage point, or the recorder at another one may have missed it.
	FateUnknown Fate = iota
	// FateDelivered: the packet was seen at all vantage points of its path.
	FateDelivered
	// FateLost: the packet was seen at one vantage point but not at the next one, which recorded packets before and
	// after.
	FateLost
	// FateCopied: the packet was seen at one vantage point but not at the previous one, which saw only the original.
	FateCopied
)

// String returns "", "delivered", "lost" or "copied".
func (f Fate) String() string { return [...]string{"", "delivered", "lost", "copied"}[f] }

// WireLen returns the length in bytes of the unit on the wire, recorded or not.
func (u *Unit) WireLen() int { return len(u.Data) + u.Truncated }

// Proto is a transport protocol.
type Proto uint8

// Transport protocols that carry ZRLMPI.
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
