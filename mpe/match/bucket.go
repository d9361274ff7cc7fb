package match

import "math/bits"

// A bucket holds the heads of up to five FIFOs, each with a tag of 12 bits, and
// compares all tags at once, the nearest that software has to an associative
// memory. A look-up touches the node of another key once in a thousand times,
// and hardly a branch depends on where in the bucket a head is.
type bucket struct {
	tags  uint64        // five lanes; a lane in use has its top bit set
	heads [lanes]uint32 // by lane
	more  uint32        // chain of the heads that found no lane
}

const (
	lanes    = 5
	laneBits = 12
	lowBits  = 1 | 1<<laneBits | 1<<(2*laneBits) | 1<<(3*laneBits) | 1<<(4*laneBits)
	topBits  = lowBits << (laneBits - 1)
	laneMask = 1<<laneBits - 1
)

// tagOf takes bits of a hash that neither level takes to choose a bucket.
func tagOf(h uint64) uint64 {
	return h>>40&(laneMask>>1) | 1<<(laneBits-1)
}

// match returns the top bits of the lanes with the tag of h, lowest first. A
// lane above one that matches may be named wrongly.
func (b *bucket) match(h uint64) uint64 {
	x := b.tags ^ tagOf(h)*lowBits
	return (x - lowBits) &^ x & topBits
}

// lane returns the number of the lowest lane of a match.
func lane(match uint64) int { return bits.TrailingZeros64(match) / laneBits }

// place puts a head into a free lane or, if there is none, into the chain.
func (b *bucket) place(h uint64, i uint32, n *node) {
	free := ^b.tags & topBits
	if free == 0 {
		n.chain = b.more
		b.more = i
		return
	}
	l := lane(free)
	b.tags |= tagOf(h) << (l * laneBits)
	b.heads[l] = i
	n.chain = 0
}

// find returns the head of the FIFO of a key in a bucket, or 0. h is the key's
// hash.
func (s nodes) find(b *bucket, h, key uint64) uint32 {
	for m := b.match(h); m != 0; m &= m - 1 {
		if i := b.heads[lane(m)]; s.at(i).key == key {
			return i
		}
	}
	i := b.more
	for i != 0 {
		n := s.at(i)
		if n.key == key {
			break
		}
		i = n.chain
	}
	return i
}

// replace puts another head, or 0, in the place of head i.
func (s nodes) replace(b *bucket, h uint64, i, by uint32) {
	for m := b.match(h); m != 0; m &= m - 1 {
		l := lane(m)
		if b.heads[l] != i {
			continue
		}
		b.heads[l] = by
		if by == 0 {
			b.tags &^= laneMask << (l * laneBits)
		}
		return
	}
	p := &b.more
	for *p != i {
		p = &s.at(*p).chain
	}
	if by == 0 {
		by = s.at(i).chain
	}
	*p = by
}
