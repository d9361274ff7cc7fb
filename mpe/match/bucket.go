package match

import "math/bits"

// A bucket holds the heads of up to five FIFOs, each with a 12-bit tag. A lookup compares all five tags at once, as an
// associative memory does, without a branch that depends on the lane. About one lookup in a thousand reads the node of
// another key.
type bucket struct {
	tags uint64 // five lanes; a lane in use has its top bit set
	// heads holds the head in each lane, or 0 for an unused lane. The extra element is the first head without a lane. A
	// failed match returns its index, so that a lookup continues there without a branch.
	heads [lanes + 1]uint32
}

const (
	// lanes is the number of FIFOs of a bucket that have a tag. lowBits and topBits are masks of the lowest and of the top
	// bit of each lane.
	lanes    = 5
	laneBits = 12
	lowBits  = 1 | 1<<laneBits | 1<<(2*laneBits) | 1<<(3*laneBits) | 1<<(4*laneBits)
	topBits  = lowBits << (laneBits - 1)
	laneMask = 1<<laneBits - 1
)

// tagOf returns the tag that represents a hash in its bucket. The tag consists of bits that do not select the bucket.
func tagOf(h uint64) uint64 {
	return h>>40&(laneMask>>1) | 1<<(laneBits-1)
}

// match returns a mask in which the top bit of each lane is set whose tag equals the tag of the hash h. Only the lowest
// set bit is reliable: higher bits may be false matches.
func (b *bucket) match(h uint64) uint64 {
	x := b.tags ^ tagOf(h)*lowBits
	return (x - lowBits) &^ x & topBits
}

// lane returns the number of the lowest lane in a result of match, or the constant lanes if there is no match. The
// multiplication and shift divide by laneBits.
func lane(match uint64) uint32 { return uint32(bits.TrailingZeros64(match)) * 43 >> 9 }

// free empties a lane.
func (b *bucket) free(l uint32) {
	b.heads[l] = 0
	b.tags &^= laneMask << (l * laneBits)
}
