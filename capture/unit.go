package capture

import (
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Source is a stream of units.
type Source interface {
	// Next fills in the next unit. Its error is io.EOF at the end of a whole
	// recording, a *TruncatedError at the end of one that was cut off, and
	// anything else if the recording cannot be read on.
	Next(*pcapng.Unit) error
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
	// Joined says how several recordings were joined, or is nil.
	Joined *Joined
}

// offloaded reports whether a UDP unit is several datagrams that the kernel had in one
// piece, as it has on a machine that leaves segmentation or coalescing to it. No rank
// sends a datagram of such a length: one of 1424 bytes is the last of an MPE's message,
// or two of 1416 and 8 bytes, which cannot be distinguished.
func offloaded(u *pcapng.Unit) bool {
	return u.Wire() > protocol.MaxDatagram && u.Wire() != protocol.MaxDatagram+protocol.LineLen
}

// take cuts off and returns the first n bytes of a unit, or what there is.
func take(u *pcapng.Unit, n int) pcapng.Unit {
	n = min(n, u.Wire())
	recorded := min(n, len(u.Data))
	part := *u
	part.Data, part.Truncated = u.Data[:recorded], n-recorded
	u.Data, u.Truncated = u.Data[recorded:], u.Truncated-part.Truncated
	return part
}
