package capture

import (
	"slices"
	"time"
)

// Limits on the memory for fragmented datagrams: 64 datagrams of 64 KiB, 4 MiB in total.
const (
	maxDatagrams   = 64
	maxDatagramLen = 65535
	// fragmentAge is the maximum time between the first and the last fragment of a datagram, according to their time
	// stamps. It equals the default of Linux.
	fragmentAge = 30 * time.Second
	// maxSpans is the maximum number of separate byte ranges into which a datagram may be divided by missing fragments.
	maxSpans = 64
)

// fragKey identifies the fragments of a datagram.
type fragKey struct {
	addrPair
	id    uint32
	proto uint8 // not for IPv6
}

// fragment is one piece of a datagram.
type fragment struct {
	key    fragKey
	offset int
	more   bool
	// data is the recorded beginning of the fragment, whose length on the wire is length.
	data   []byte
	length int
	proto  uint8
}

// datagram is the payload of a reassembled IP packet. data holds the recorded part, which is the beginning of a payload
// of length bytes. It is valid until recycle is called.
type datagram struct {
	proto  uint8
	data   []byte
	length int
	// fragments is the number of fragments of the datagram. longest is the length in bytes of its longest fragment.
	fragments, longest int
}

// defragmenter reassembles IP fragments. It drops a datagram whose fragments partly overlap: the overlap is an attack
// or a bug, and receivers disagree on the bytes to keep.
type defragmenter struct {
	// pending is sorted by the arrival of the first fragment. The list is short, so a linear search is faster than a
	// map.
	pending []*partialDatagram
	// complete holds datagrams whose buffers remain in use until the next packet. free holds reusable buffers.
	complete, free []*partialDatagram
}

// partialDatagram is a datagram with missing fragments.
type partialDatagram struct {
	key     fragKey
	first   time.Time
	packets int64
	longest int // of the fragments
	proto   uint8
	// data holds the received bytes, with holes. spans lists the received ranges. total is the length of the datagram,
	// or -1 until the last fragment arrives.
	data  []byte
	spans []byteRange
	total int
	// recordedLen is the number of recorded bytes before the first byte that is missing from the file because its
	// fragment was truncated.
	recordedLen int
}

// byteRange is a range of bytes that includes from but not to.
type byteRange struct{ from, to int }

// addFragment adds a fragment. If the fragment completes its datagram, addFragment returns the datagram and gotUnit.
// Otherwise v is unitPending, or skipFragment or skipMalformed if the fragment is unusable. lost is the number of
// earlier packets dropped by this call.
func (d *defragmenter) addFragment(f *fragment, now time.Time) (whole datagram, v decodeResult, lost int64) {
	to := f.offset + f.length
	if f.length <= 0 || to > maxDatagramLen || (f.more && f.length%8 != 0) {
		return whole, skipMalformed, 0
	}
	i := d.find(f.key)
	if i < 0 {
		if len(d.pending) == maxDatagrams {
			lost = d.drop(0)
		}
		i = len(d.pending)
		d.pending = append(d.pending, d.newPartial(f.key, now))
	}
	p := d.pending[i]
	switch p.addRange(f.offset, to, f.more) {
	case rangeDuplicate:
		return whole, skipFragment, lost
	case rangeInvalid:
		return whole, skipFragment, lost + d.drop(i)
	}
	p.packets++
	p.longest = max(p.longest, f.length)
	p.store(f)
	if p.total < 0 || len(p.spans) != 1 || p.spans[0] != (byteRange{0, p.total}) {
		return whole, unitPending, lost
	}
	d.remove(i)
	d.complete = append(d.complete, p)
	return datagram{p.proto, p.data[:min(p.recordedLen, p.total)], p.total, int(p.packets), p.longest}, gotUnit, lost
}

func (d *defragmenter) find(key fragKey) int {
	return slices.IndexFunc(d.pending, func(p *partialDatagram) bool { return p.key == key })
}

// expire drops datagrams older than fragmentAge, and returns the number of packets dropped.
func (d *defragmenter) expire(now time.Time) (lost int64) {
	for len(d.pending) > 0 && now.Sub(d.pending[0].first) > fragmentAge {
		lost += d.drop(0)
	}
	return lost
}

// dropAll drops all pending datagrams, and returns the number of packets dropped.
func (d *defragmenter) dropAll() (lost int64) {
	for len(d.pending) > 0 {
		lost += d.drop(0)
	}
	return lost
}

// drop drops pending datagram i, and returns the number of packets dropped.
func (d *defragmenter) drop(i int) int64 {
	p := d.pending[i]
	d.remove(i)
	d.free = append(d.free, p)
	return p.packets
}

func (d *defragmenter) remove(i int) {
	d.pending = append(d.pending[:i], d.pending[i+1:]...)
}

// recycle makes the buffers of completed datagrams available for new ones.
func (d *defragmenter) recycle() {
	d.free = append(d.free, d.complete...)
	d.complete = d.complete[:0]
}

// newPartial returns an empty datagram to be reassembled. If possible, it reuses the buffer of an earlier one.
func (d *defragmenter) newPartial(key fragKey, now time.Time) *partialDatagram {
	var p *partialDatagram
	if n := len(d.free); n > 0 {
		p = d.free[n-1]
		d.free = d.free[:n-1]
	} else {
		p = new(partialDatagram)
	}
	*p = partialDatagram{key: key, first: now, total: -1, recordedLen: maxDatagramLen, data: p.data[:0],
		spans: p.spans[:0]}
	return p
}

// store copies the bytes of a fragment into the datagram.
func (p *partialDatagram) store(f *fragment) {
	if f.offset == 0 {
		p.proto = f.proto
	}
	if len(f.data) < f.length {
		p.recordedLen = min(p.recordedLen, f.offset+len(f.data))
	}
	// A gap before this fragment may hold bytes of an earlier datagram. By the time the datagram is used, those bytes
	// have been overwritten or lie beyond recordedLen.
	if end := f.offset + f.length; end > cap(p.data) {
		grown := make([]byte, end, min(2*end, maxDatagramLen+1))
		copy(grown, p.data)
		p.data = grown
	} else if end > len(p.data) {
		p.data = p.data[:end]
	}
	copy(p.data[f.offset:], f.data)
}
