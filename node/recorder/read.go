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

// Addresses returns the addresses of a rank and of its peer, and what carries their packets. A packet through shared memory is read as
// one of UDP.
type Addresses func(rank, peer int) (local, remote netip.AddrPort, proto pcapng.Proto)

// Reader reads what a recorder has as the units of a recording. It is not safe for concurrent use.
type Reader struct {
	rec  *Recorder
	of   Addresses
	base time.Time
	// next has the number of the next entry of each ring of each rank.
	next [][]uint64
	// begun: Read was called.
	begun bool
	lost  uint64
	// comments wait for the next packet of their pair: an event came before the first one that is there.
	comments map[[2]int32][]string
	packets  int64
}

// Reader returns a reader that begins with the oldest packets. now gives the recording its clock.
func (rec *Recorder) Reader(of Addresses, now time.Time) *Reader {
	rd := &Reader{rec: rec, of: of, base: now, comments: map[[2]int32][]string{}}
	for _, r := range rec.ranks {
		next := make([]uint64, len(r.rings))
		for i := range next {
			next[i] = r.rings[i].oldest()
		}
		rd.next = append(rd.next, next)
	}
	return rd
}

// Reader is Recorder.Reader of one rank.
func (r *Rank) Reader(of Addresses, now time.Time) *Reader {
	return (&Recorder{ranks: []*Rank{r}}).Reader(of, now)
}

// Lost returns how many packets and events were overwritten after the reader had begun and before it read them.
func (rd *Reader) Lost() uint64 { return rd.lost }

// found is an entry of a rank, and when it was.
type found struct {
	entry
	of   *Rank
	wall int64 // in nanoseconds, relative to the reader's base
}

// Recorded is what a recorder has of a time.
type Recorded struct {
	// Units are packets, with events as comments, and Calls those of the ranks' programs, both in the order of time.
	Units []pcapng.Unit
	Calls []pcapng.Call
}

// Since returns what there is from a time on.
func (r Recorded) Since(from time.Time) Recorded {
	unit := slices.IndexFunc(r.Units, func(u pcapng.Unit) bool { return !u.Time.Before(from) })
	call := slices.IndexFunc(r.Calls, func(c pcapng.Call) bool { return !c.Time.Before(from) })
	return Recorded{tail(r.Units, unit), tail(r.Calls, call)}
}

// tail returns a list from an index on; nothing if that is -1.
func tail[T any](list []T, from int) []T {
	if from < 0 {
		return nil
	}
	return list[from:]
}

// Read returns what there is up to a time and was not returned before.
func (rd *Reader) Read(until time.Time) Recorded {
	var all []found
	gaps := map[*ring]int64{}
	for i, r := range rd.rec.ranks {
		began := r.started.Load()
		if began == nil {
			continue
		}
		offset := int64(began.Sub(rd.base))
		for j := range r.rings {
			list, gap := rd.read(i, j, int64(until.Sub(*began)))
			for k := range list {
				all = append(all, found{list[k], r, list[k].at + offset})
			}
			if gap && len(list) > 0 {
				gaps[&r.rings[j]] = list[0].at + offset
			}
		}
	}
	rd.begun = true
	all = slices.DeleteFunc(all, func(f found) bool { return half(&f, gaps) })
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.wall, b.wall) })
	return rd.recorded(all)
}

// read returns the entries of a ring up to a time of its clock. gap: what was there before the first of them was overwritten.
func (rd *Reader) read(rank, number int, until int64) (list []entry, gap bool) {
	r, next := &rd.rec.ranks[rank].rings[number], &rd.next[rank][number]
	gap = !rd.begun && *next > 0
	for more := true; more; {
		var lost uint64
		list, *next, lost, more = r.read(list, *next, until)
		rd.lost += lost
		gap = gap || lost > 0
	}
	return list, gap
}

// half reports whether an entry is of two ranks of this process, each of which has what it sends in a ring of its own, and those of the
// other one have a gap until later: half of a conversation is taken for a fault of it. gaps are when they end.
func half(f *found, gaps map[*ring]int64) bool {
	if f.kind.call() || f.peer < 0 {
		return false
	}
	other := f.of.pairs[f.peer].remote
	if other == nil || other.pairs[f.of.rank] == nil {
		return false
	}
	end, gap := gaps[other.pairs[f.of.rank].ring]
	return gap && f.wall < end
}

// recorded makes units and calls of entries, and comments of events.
func (rd *Reader) recorded(all []found) Recorded {
	var calls []pcapng.Call
	units := make([]pcapng.Unit, 0, len(all))
	last := map[[2]int32]int{} // the last unit of each pair
	for _, f := range all {
		if f.kind.call() {
			calls = append(calls, f.call(rd.base))
			continue
		}
		key := [2]int32{min(int32(f.of.rank), f.peer), max(int32(f.of.rank), f.peer)}
		if f.kind == entryCycle {
			// Unless its packet was overwritten.
			if i, ok := last[key]; ok && units[i].Time.Equal(rd.base.Add(time.Duration(f.wall))) {
				units[i].Comments = append(units[i].Comments, f.cycle().String())
			}
			continue
		}
		if !f.kind.packet() {
			if i, ok := last[key]; ok {
				units[i].Comments = f.comment(units[i].Comments)
			} else if len(rd.comments[key]) < maxWaiting {
				rd.comments[key] = f.comment(rd.comments[key])
			}
			continue
		}
		first := len(units)
		units = rd.packet(units, f)
		units[first].Comments = append(units[first].Comments, rd.comments[key]...)
		delete(rd.comments, key)
		last[key] = first
	}
	return Recorded{units, calls}
}

// call returns the call of an entry.
func (f *found) call(base time.Time) pcapng.Call {
	c := pcapng.Call{
		Time: base.Add(time.Duration(f.wall)), Rank: f.of.rank, Name: coll.Collective(f.code).String(), State: pcapng.Posted, Peer: int(f.peer),
		Took: time.Duration(binary.LittleEndian.Uint64(f.data)), ID: int64(binary.LittleEndian.Uint64(f.data[8:])),
		Bytes: int64(binary.LittleEndian.Uint64(f.data[16:])), Tag: int(int32(binary.LittleEndian.Uint32(f.data[24:]))),
		Comm: binary.LittleEndian.Uint32(f.data[28:]),
	}
	switch f.code {
	case codeSend:
		c.Name = pcapng.SendCall
	case 0:
		c.Name = pcapng.ReceiveCall
	}
	switch failed := f.data[32] != 0; {
	case failed:
		c.State = pcapng.Failed
	case f.kind == entryEnded:
		c.State = pcapng.Ended
	}
	return c
}

// cycle returns the cycle of an entry.
func (f *found) cycle() pcapng.Cycle {
	return pcapng.Cycle{
		Rank: int(binary.LittleEndian.Uint32(f.data)), Simulation: binary.LittleEndian.Uint64(f.data[4:]), Cycle: binary.LittleEndian.Uint64(f.data[12:]),
	}
}

// maxWaiting bounds the comments that wait for a packet of a pair.
const maxWaiting = 16

// The most bytes of a unit: as many whole datagrams as an IP packet holds, or one of the extended profile.
const (
	longestUnit     = 45 * protocol.MaxDatagram
	longestDatagram = 65507
)

// packet appends the unit of a packet; or several, if that is longer than any IP packet.
func (rd *Reader) packet(units []pcapng.Unit, f found) []pcapng.Unit {
	u := pcapng.Unit{Time: rd.base.Add(time.Duration(f.wall)), Proto: pcapng.UDP, Data: f.data}
	if f.kind == entryForeign {
		from := netip.AddrFrom16([addressLen - 2]byte(u.Data)).Unmap()
		u.Src = netip.AddrPortFrom(from, binary.BigEndian.Uint16(u.Data[addressLen-2:]))
		u.Dst, _, _ = rd.of(f.of.rank, f.of.rank)
		u.Data = u.Data[addressLen:]
		u.Comments = append(u.Comments, fmt.Sprintf("rank %d: dropped, the address belongs to no rank", f.of.rank))
	} else {
		u.Src, u.Dst, u.Proto = rd.of(f.of.rank, int(f.peer))
		if f.kind == entryReceived {
			u.Src, u.Dst = u.Dst, u.Src
		}
	}
	most := longestUnit
	if protocol.IsExtended(u.Data) {
		most = longestDatagram
	}
	for left := int(f.wire); ; u.Data = nil {
		part := min(left, most)
		u.Data = u.Data[:min(part, len(u.Data))]
		u.Truncated = part - len(u.Data)
		rd.packets++
		u.Packet = rd.packets
		units = append(units, u)
		if left -= part; left == 0 {
			return units
		}
		u.Comments = nil
	}
}

// comment appends an event to the comments of a packet. The parts of an error make one.
func (f *found) comment(list []string) []string {
	switch n := len(list); {
	case f.kind == entryDropped:
		return append(list, fmt.Sprintf("rank %d: dropped, %v", f.of.rank, state.DropReason(f.code)))
	case f.kind == entryNoted:
		return append(list, fmt.Sprintf("rank %d: %v", f.of.rank, state.Event(f.code)))
	case f.code == 0 || n == 0:
		return append(list, fmt.Sprintf("rank %d: failed: %s", f.of.rank, f.data))
	default:
		list[n-1] += string(f.data)
	}
	return list
}
