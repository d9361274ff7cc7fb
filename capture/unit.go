package capture

import (
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Source is a stream of units.
type Source interface {
	// Next fills in the next unit. At the end, it returns io.EOF if the recording is complete, a *TruncatedError if it
	// is truncated, and another error if the rest of it is unreadable.
	Next(*pcapng.Unit) error
	// Stats returns the counts so far.
	Stats() Stats
	// Close releases the file or interface.
	Close() error
}

// Stats counts the packets read and ignored by a Source.
type Stats struct {
	// Packets counts recorded packets. Units counts the units that these packets contain.
	Packets, Units int64
	// Bytes counts the recorded bytes of the packets.
	Bytes int64
	// Comment and End are the comment on the recording and the end time of the recording, or zero if the file does not
	// contain them.
	Comment string
	End     time.Time
	// Skipped counts the ignored packets by reason, such as "malformed" or "not_udp_or_tcp".
	Skipped map[string]int64
	// Joined describes how several recordings were joined. It is nil for a single recording.
	Joined *JoinInfo
}

// isCoalesced reports whether a UDP unit consists of several datagrams that the kernel coalesced, as on a machine with
// segmentation or receive offload. No rank sends a datagram this long. isCoalesced returns false for a unit of 1424
// bytes, which may be either the last datagram of an MPE's message or two datagrams of 1416 and 8 bytes.
func isCoalesced(u *pcapng.Unit) bool {
	return u.WireLen() > protocol.MaxDatagram && u.WireLen() != protocol.MaxDatagram+protocol.LineLen
}

// splitUnit removes the first n bytes of a unit, or all bytes of a shorter unit, and returns them.
func splitUnit(u *pcapng.Unit, n int) pcapng.Unit {
	n = min(n, u.WireLen())
	recorded := min(n, len(u.Data))
	part := *u
	part.Data, part.Truncated = u.Data[:recorded], n-recorded
	u.Data, u.Truncated = u.Data[recorded:], u.Truncated-part.Truncated
	return part
}
