package capture

import (
	"slices"
	"time"
)

// Bounds of what is kept of fragmented datagrams: 64 of 64 KiB are 4 MiB.
const (
	maxDatagrams = 64
	maxDatagram  = 65535
	// fragmentAge is how long the fragments of a datagram may be apart, by
	// the packets' times. Linux waits as long.
	fragmentAge = 30 * time.Second
	// maxSpans bounds the disorder in one datagram.
	maxSpans = 64
)

// fragKey identifies the fragments of a datagram.
type fragKey struct {
	ends
	id    uint32
	proto uint8 // not for IPv6
}

// fragment is one piece of a datagram.
type fragment struct {
	key    fragKey
	offset int
	more   bool
	// data is what was recorded of length bytes.
	data   []byte
	length int
	proto  uint8
}

// datagram is the payload of a reassembled IP packet, valid until recycle. data
// is what was recorded of length bytes, up to the first byte that was not.
type datagram struct {
	proto  uint8
	data   []byte
	length int
	// fragments is how many there were, and longest the length of the longest one.
	fragments, longest int
}

// defragmenter puts IP fragments together. Corrupt datagrams are dropped whole:
// fragments that overlap in part are an attack or a mistake, and whichever of
// them is used, another reader uses the other one.
type defragmenter struct {
	// pending are in the order of their first fragments. There are few: a
	// search beats a map.
	pending []*partial
	// done are whole, and their buffers in use until the next packet.
	done, free []*partial
}

// partial is a datagram of which fragments are missing.
type partial struct {
	key     fragKey
	first   time.Time
	packets int64
	longest int // of the fragments
	proto   uint8
	// data[:end] has what came, with holes; spans say where. total is the
	// length, once the last fragment has arrived, or -1.
	data  []byte
	spans []byteRange
	total int
	// recorded is the first byte that the file does not have because the
	// fragment was truncated.
	recorded int
}

// byteRange is a range of bytes, from inclusive, to exclusive.
type byteRange struct{ from, to int }

// add takes a fragment. The verdict is gotUnit with the datagram that it
// completes, or heldBack, or skipFragment or skipMalformed if the fragment is of
// no use. lost is how many earlier packets were dropped for it.
func (d *defragmenter) add(f *fragment, now time.Time) (whole datagram, v verdict, lost int64) {
	to := f.offset + f.length
	if f.length <= 0 || to > maxDatagram || (f.more && f.length%8 != 0) {
		return whole, skipMalformed, 0
	}
	i := d.find(f.key)
	if i < 0 {
		if len(d.pending) == maxDatagrams {
			lost = d.drop(0)
		}
		i = len(d.pending)
		d.pending = append(d.pending, d.fresh(f.key, now))
	}
	p := d.pending[i]
	switch p.place(f.offset, to, f.more) {
	case placedBefore:
		return whole, skipFragment, lost
	case misplaced:
		return whole, skipFragment, lost + d.drop(i)
	}
	p.packets++
	p.longest = max(p.longest, f.length)
	p.store(f)
	if p.total < 0 || len(p.spans) != 1 || p.spans[0] != (byteRange{0, p.total}) {
		return whole, heldBack, lost
	}
	d.remove(i)
	d.done = append(d.done, p)
	return datagram{p.proto, p.data[:min(p.recorded, p.total)], p.total, int(p.packets), p.longest}, gotUnit, lost
}

func (d *defragmenter) find(key fragKey) int {
	return slices.IndexFunc(d.pending, func(p *partial) bool { return p.key == key })
}

// expire drops datagrams that have waited for too long, and returns how many
// packets that were.
func (d *defragmenter) expire(now time.Time) (lost int64) {
	for len(d.pending) > 0 && now.Sub(d.pending[0].first) > fragmentAge {
		lost += d.drop(0)
	}
	return lost
}

// dropAll drops everything.
func (d *defragmenter) dropAll() (lost int64) {
	for len(d.pending) > 0 {
		lost += d.drop(0)
	}
	return lost
}

// drop removes a datagram, and returns how many packets of it there were.
func (d *defragmenter) drop(i int) int64 {
	p := d.pending[i]
	d.remove(i)
	d.free = append(d.free, p)
	return p.packets
}

func (d *defragmenter) remove(i int) {
	d.pending = append(d.pending[:i], d.pending[i+1:]...)
}

// recycle recycles the datagrams that were returned.
func (d *defragmenter) recycle() {
	d.free = append(d.free, d.done...)
	d.done = d.done[:0]
}

// fresh returns an empty datagram, with the buffer of an earlier one if there is.
func (d *defragmenter) fresh(key fragKey, now time.Time) *partial {
	var p *partial
	if n := len(d.free); n > 0 {
		p = d.free[n-1]
		d.free = d.free[:n-1]
	} else {
		p = new(partial)
	}
	*p = partial{key: key, first: now, total: -1, recorded: maxDatagram, data: p.data[:0], spans: p.spans[:0]}
	return p
}

// store copies a fragment's bytes to their place.
func (p *partial) store(f *fragment) {
	if f.offset == 0 {
		p.proto = f.proto
	}
	if len(f.data) < f.length {
		p.recorded = min(p.recorded, f.offset+len(f.data))
	}
	// The gap that this leaves may hold bytes of an earlier datagram. They
	// are overwritten, or lie behind recorded, before anybody sees them.
	if end := f.offset + f.length; end > cap(p.data) {
		grown := make([]byte, end, min(2*end, maxDatagram+1))
		copy(grown, p.data)
		p.data = grown
	} else if end > len(p.data) {
		p.data = p.data[:end]
	}
	copy(p.data[f.offset:], f.data)
}
