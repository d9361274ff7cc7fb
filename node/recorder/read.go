package recorder

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Addresses returns the addresses of a rank and its peer, and the protocol of their packets. The protocol of a packet
// through shared memory is UDP.
type Addresses func(rank, peer int) (local, remote netip.AddrPort, proto pcapng.Proto)

// Reader converts the contents of a recorder to the units of a recording. It is not safe for concurrent use.
type Reader struct {
	rec       *Recorder
	addresses Addresses
	baseTime  time.Time
	// nextEntry holds the number of the next entry to read, for each ring of each rank.
	nextEntry [][]uint64
	// hasRead is set after the first call of Read.
	hasRead bool
	lost    uint64
	// comments holds, for each pair, the events that precede its first packet. They become comments of that packet.
	comments    map[[2]int32][]string
	packetCount int64
}

// Reader returns a reader that begins with the oldest packets. now is the current time on the clock of the recording.
func (rec *Recorder) Reader(of Addresses, now time.Time) *Reader {
	rd := &Reader{rec: rec, addresses: of, baseTime: now, comments: map[[2]int32][]string{}}
	for _, r := range rec.ranks {
		next := make([]uint64, len(r.rings))
		for i := range next {
			next[i] = r.rings[i].oldestEntry()
		}
		rd.nextEntry = append(rd.nextEntry, next)
	}
	return rd
}

// Reader is Recorder.Reader for one rank.
func (r *Rank) Reader(of Addresses, now time.Time) *Reader {
	return (&Recorder{ranks: []*Rank{r}}).Reader(of, now)
}

// LostEntries returns the number of packets and events overwritten before the reader could read them.
func (rd *Reader) LostEntries() uint64 { return rd.lost }

// rankEntry is an entry with its rank and its time on the wall clock.
type rankEntry struct {
	entry
	rank     *Rank
	wallTime int64 // in nanoseconds, relative to the reader's base
}

// Recording holds what a recorder has recorded during a period.
type Recording struct {
	// Units holds the packets, with events as comments. Calls holds the calls of the ranks' programs. Both are in order
	// of time.
	Units []pcapng.Unit
	Calls []pcapng.Call
}

// Since returns the part of the recording from the given time on.
func (r Recording) Since(from time.Time) Recording {
	unit := slices.IndexFunc(r.Units, func(u pcapng.Unit) bool { return !u.Time.Before(from) })
	call := slices.IndexFunc(r.Calls, func(c pcapng.Call) bool { return !c.Time.Before(from) })
	return Recording{tailFrom(r.Units, unit), tailFrom(r.Calls, call)}
}

// tailFrom returns the part of a list that begins at index from, or nil if from is -1.
func tailFrom[T any](list []T, from int) []T {
	if from < 0 {
		return nil
	}
	return list[from:]
}

// Read returns the entries up to a time, except those that an earlier call returned.
func (rd *Reader) Read(until time.Time) Recording {
	var all []rankEntry
	gaps := map[*ring]int64{}
	for i, rank := range rd.rec.ranks {
		began := rank.startTime.Load()
		if began == nil {
			continue
		}
		offset := int64(began.Sub(rd.baseTime))
		for j := range rank.rings {
			list, gap := rd.readRing(i, j, int64(until.Sub(*began)))
			for k := range list {
				all = append(all, rankEntry{list[k], rank, list[k].engineTime + offset})
			}
			if gap && len(list) > 0 {
				gaps[&rank.rings[j]] = list[0].engineTime + offset
			}
		}
	}
	rd.hasRead = true
	all = slices.DeleteFunc(all, func(f rankEntry) bool { return isHalfExchange(&f, gaps) })
	slices.SortStableFunc(all, func(a, b rankEntry) int { return cmp.Compare(a.wallTime, b.wallTime) })
	return rd.toRecording(all)
}

// readRing returns the entries of a ring up to a time on the ring's clock. gap reports whether entries before the first
// one were overwritten.
func (rd *Reader) readRing(rank, number int, until int64) (list []entry, gap bool) {
	r, next := &rd.rec.ranks[rank].rings[number], &rd.nextEntry[rank][number]
	gap = !rd.hasRead && *next > 0
	for more := true; more; {
		var lost uint64
		list, *next, lost, more = r.readEntries(list, *next, until)
		rd.lost += lost
		gap = gap || lost > 0
	}
	return list, gap
}

// isHalfExchange reports whether only one side of an exchange between two ranks of this process is still recorded: the
// ring of the other rank has a gap that ends after the entry. Analysis would mistake this for a fault. gaps holds the
// ends of the gaps.
func isHalfExchange(f *rankEntry, gaps map[*ring]int64) bool {
	if f.kind.isCall() || f.peer < 0 {
		return false
	}
	other := f.rank.pairs[f.peer].remote
	if other == nil || other.pairs[f.rank.rank] == nil {
		return false
	}
	end, gap := gaps[other.pairs[f.rank.rank].ring]
	return gap && f.wallTime < end
}

// toRecording converts entries to units and calls, and events to comments.
func (rd *Reader) toRecording(all []rankEntry) Recording {
	var calls []pcapng.Call
	units := make([]pcapng.Unit, 0, len(all))
	last := map[[2]int32]int{} // index of the last unit of each pair
	for _, f := range all {
		if f.kind.isCall() {
			calls = append(calls, f.toCall(rd.baseTime))
			continue
		}
		key := [2]int32{min(int32(f.rank.rank), f.peer), max(int32(f.rank.rank), f.peer)}
		if f.kind == entryCycle {
			// The packet may have been overwritten.
			if i, ok := last[key]; ok && units[i].Time.Equal(rd.baseTime.Add(time.Duration(f.wallTime))) {
				units[i].Comments = append(units[i].Comments, f.toCycle().String())
			}
			continue
		}
		if !f.kind.isPacket() {
			if i, ok := last[key]; ok {
				units[i].Comments = f.appendComment(units[i].Comments)
			} else if len(rd.comments[key]) < maxComments {
				rd.comments[key] = f.appendComment(rd.comments[key])
			}
			continue
		}
		first := len(units)
		units = rd.appendPacket(units, f)
		units[first].Comments = append(units[first].Comments, rd.comments[key]...)
		delete(rd.comments, key)
		last[key] = first
	}
	return Recording{units, calls}
}

// toCall returns the entry as a call.
func (f *rankEntry) toCall(base time.Time) pcapng.Call {
	call := pcapng.Call{
		Time: base.Add(time.Duration(f.wallTime)), Rank: f.rank.rank, Name: coll.Collective(f.code).String(),
		State: pcapng.CallPosted, Peer: int(f.peer),
		Duration: time.Duration(binary.LittleEndian.Uint64(f.data)), ID: int64(binary.LittleEndian.Uint64(f.data[8:])),
		Bytes: int64(binary.LittleEndian.Uint64(f.data[16:])), Tag: int(int32(binary.LittleEndian.Uint32(f.data[24:]))),
		Comm: binary.LittleEndian.Uint32(f.data[28:]),
	}
	switch f.code {
	case codeSend:
		call.Name = pcapng.SendCall
	case 0:
		call.Name = pcapng.ReceiveCall
	}
	switch failed := f.data[32] != 0; {
	case failed:
		call.State = pcapng.CallFailed
	case f.kind == entryEnded:
		call.State = pcapng.CallCompleted
	}
	return call
}

// toCycle returns the entry as a cycle.
func (f *rankEntry) toCycle() pcapng.Cycle {
	return pcapng.Cycle{
		Rank: int(binary.LittleEndian.Uint32(f.data)), Simulation: binary.LittleEndian.Uint64(f.data[4:]),
		Cycle: binary.LittleEndian.Uint64(f.data[12:]),
	}
}

// maxComments is the maximum number of comments that the first packet of a pair may get.
const maxComments = 16

// Maximum sizes of a unit: the whole datagrams that fit in an IP packet, or one datagram of the extended profile.
const (
	maxUnitLen     = 45 * protocol.MaxDatagram
	maxExtDatagram = 65507
)

// appendPacket appends a packet as one unit, or as several units if it is longer than an IP packet.
func (rd *Reader) appendPacket(units []pcapng.Unit, f rankEntry) []pcapng.Unit {
	unit := pcapng.Unit{Time: rd.baseTime.Add(time.Duration(f.wallTime)), Proto: pcapng.UDP, Data: f.data}
	if f.kind == entryForeign {
		from := netip.AddrFrom16([addressLen - 2]byte(unit.Data)).Unmap()
		unit.Src = netip.AddrPortFrom(from, binary.BigEndian.Uint16(unit.Data[addressLen-2:]))
		unit.Dst, _, _ = rd.addresses(f.rank.rank, f.rank.rank)
		unit.Data = unit.Data[addressLen:]
		unit.Comments = append(unit.Comments, fmt.Sprintf("rank %d: dropped, the address belongs to no rank", f.rank.rank))
	} else {
		unit.Src, unit.Dst, unit.Proto = rd.addresses(f.rank.rank, int(f.peer))
		if f.kind == entryReceived {
			unit.Src, unit.Dst = unit.Dst, unit.Src
		}
	}
	most := maxUnitLen
	if protocol.IsExtended(unit.Data) {
		most = maxExtDatagram
	}
	for left := int(f.wireLen); ; unit.Data = nil {
		part := min(left, most)
		unit.Data = unit.Data[:min(part, len(unit.Data))]
		unit.Truncated = part - len(unit.Data)
		rd.packetCount++
		unit.Packet = rd.packetCount
		units = append(units, unit)
		if left -= part; left == 0 {
			return units
		}
		unit.Comments = nil
	}
}

// appendComment appends the text of an event to the comments of a packet. It joins the parts of a long error.
func (f *rankEntry) appendComment(list []string) []string {
	switch n := len(list); {
	case f.kind == entryDropped:
		return append(list, fmt.Sprintf("rank %d: dropped, %v", f.rank.rank, state.DropReason(f.code)))
	case f.kind == entryNoted:
		return append(list, fmt.Sprintf("rank %d: %v", f.rank.rank, state.Event(f.code)))
	case f.code == 0 || n == 0:
		return append(list, fmt.Sprintf("rank %d: failed: %s", f.rank.rank, f.data))
	default:
		list[n-1] += string(f.data)
	}
	return list
}
