package match

import "math/bits"

// A bucket holds the heads of up to five FIFOs, each with a tag of 12 bits. A lookup compares all five tags at
// once, as an associative memory does. About one lookup in a thousand touches the node of another key, and no
// branch depends on the lane of a head.
type bucket struct {
	tags uint64 // five lanes; a lane in use has its top bit set
	// heads holds the head in each lane, or 0 in an unused lane. The extra element is the first head for which
	// there was no free lane; the lane number of a failed match leads there.
	heads [lanes + 1]uint32
}

const (
	lanes    = 5
	laneBits = 12
	lowBits  = 1 | 1<<laneBits | 1<<(2*laneBits) | 1<<(3*laneBits) | 1<<(4*laneBits)
	topBits  = lowBits << (laneBits - 1)
	laneMask = 1<<laneBits - 1
)

// tagOf extracts bits of a hash that do not choose its bucket.
func tagOf(h uint64) uint64 {
	return h>>40&(laneMask>>1) | 1<<(laneBits-1)
}

// match returns the top bits of the lanes with the tag of h. Only the lowest bit is reliable: a higher one
// may be a false match.
func (b *bucket) match(h uint64) uint64 {
	x := b.tags ^ tagOf(h)*lowBits
	return (x - lowBits) &^ x & topBits
}

// lane returns the number of the lowest lane of a match, or lanes if there is no match. It divides by laneBits.
func lane(match uint64) uint32 { return uint32(bits.TrailingZeros64(match)) * 43 >> 9 }

// free empties a lane.
func (b *bucket) free(l uint32) {
	b.heads[l] = 0
	b.tags &^= laneMask << (l * laneBits)
}
