package capture

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
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
	// Gap is how many bytes of a TCP stream are missing before Data.
	Gap int
	// Restart is true for the first unit of a TCP direction: what was
	// pending of an earlier connection between the same addresses is void.
	Restart bool
	// Comments are those that the recording has for the packet, or is to have.
	Comments []string
}

// length is how many bytes the unit had on the wire, recorded or not.
func (u *Unit) length() int { return len(u.Data) + u.Truncated }

// offloaded reports whether a UDP unit is several datagrams that the kernel had in one
// piece, as it has on a machine that leaves segmentation or coalescing to it. No rank
// sends a datagram of such a length: one of 1424 bytes is the last of an MPE's message,
// or two of 1416 and 8 bytes, which cannot be distinguished.
func (u *Unit) offloaded() bool {
	return u.length() > protocol.MaxDatagram && u.length() != protocol.MaxDatagram+protocol.LineLen
}

// take cuts off and returns the first n bytes of a unit, or what there is.
func (u *Unit) take(n int) Unit {
	n = min(n, u.length())
	recorded := min(n, len(u.Data))
	part := *u
	part.Data, part.Truncated = u.Data[:recorded], n-recorded
	u.Data, u.Truncated = u.Data[recorded:], u.Truncated-part.Truncated
	return part
}

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

// Source is a stream of units.
type Source interface {
	// Next fills in the next unit. Its error is io.EOF at the end of a whole
	// recording, a *TruncatedError at the end of one that was cut off, and
	// anything else if the recording cannot be read on.
	Next(*Unit) error
	// Stats reports what was read so far.
	Stats() Stats
	// Close releases the file or interface.
	Close() error
}

// Stats counts what a Source has read and ignored.
type Stats struct {
	// Packets counts recorded packets, Units what became of them.
	Packets, Units int64
	// Bytes counts the bytes of the packets as recorded.
	Bytes int64
	// Comment is the recording's own, and End when it ended, as it says itself; zero if it does not.
	Comment string
	End     time.Time
	// Skipped counts packets that hold no UDP or TCP over IP, or are corrupt,
	// by reason.
	Skipped map[string]int64
}
