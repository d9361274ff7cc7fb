package recorder

import "sync"

// SnapLength is how many bytes of each packet are kept: a header of the extended profile, and the payload of an ACK with two ranges.
const SnapLength = 108

// entry is a packet or an event. It has no pointers, so that the garbage collector does not look at rings.
type entry struct {
	at   int64 // on the engine's clock, in nanoseconds
	wire uint32
	peer int32 // or mpe.UnknownPeer
	kind entryKind
	// code is an mpe.DropReason or mpe.Event, by kind.
	code uint8
	// n is how many bytes data has.
	n    uint8
	data [SnapLength]byte
}

type entryKind uint8

const (
	entrySent entryKind = iota + 1
	entryReceived
	// entryForeign is a packet from an address that is no rank's. Its data begins with the address: addressLen bytes.
	entryForeign
	entryDropped
	entryNoted
	// entryFailed has the beginning of the error as data.
	entryFailed
)

// packet reports whether the entry is a packet.
func (k entryKind) packet() bool { return k <= entryForeign }

// addressLen is the length in bytes of an IPv6 address and a port.
const addressLen = 16 + 2

// ring has the last entries of one pair, or of several of a rank.
type ring struct {
	mu      sync.Mutex
	entries []entry // nil before the first
	size    int     // of entries
	at      int     // where the next one goes
	total   uint64  // how many there were
}

// next returns the entry to be filled in, which was the oldest. The lock is held.
func (r *ring) next() *entry {
	if r.entries == nil {
		r.entries = make([]entry, r.size)
	}
	e := &r.entries[r.at]
	if r.at++; r.at == r.size {
		r.at = 0
	}
	r.total++
	return e
}

// oldest returns the number of the oldest entry that is there.
func (r *ring) oldest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total - min(r.total, uint64(r.size))
}

// readBatch is how many entries are copied at a time, so that the rank does not wait for long.
const readBatch = 256

// read appends entries from number from on, at most readBatch, and none after until, to list. It returns the number of the next one,
// and how many were overwritten before they could be read. more: there are others.
func (r *ring) read(list []entry, from uint64, until int64) (read []entry, next, lost uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest := r.total - min(r.total, uint64(r.size)); from < oldest {
		from, lost = oldest, oldest-from
	}
	for n := 0; from < r.total; n++ {
		e := &r.entries[from%uint64(r.size)]
		if e.at > until {
			return list, from, lost, false
		}
		if n == readBatch {
			return list, from, lost, true
		}
		list = append(list, *e)
		from++
	}
	return list, from, lost, false
}
