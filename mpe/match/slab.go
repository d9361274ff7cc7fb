package match

// Entries are numbered from 1 and live in segments, so that growth copies
// nothing. 0 is no entry: its node closes the ring of the queue's order and is
// what a look-up that finds nothing reads.
const (
	segBits = 8
	segLen  = 1 << segBits
	segMask = segLen - 1
)

// node is an entry of a queue; two to a cache line.
type node struct {
	key, seq uint64
	link     // in the FIFO of its key, or in the free list
	// The queue's order, a ring that begins and ends at 0.
	older, younger uint32
}

// link is the place of an entry in a FIFO.
type link struct {
	next uint32
	prev uint32 // a head's is the tail, with headBit
}

const headBit = 1 << 31

const (
	noKey = 0xFFFFFFFE_FFFFFFFE // nobody's
	never = 1<<61 - 1           // above every seq
)

// rare is what hardly any operation needs of an entry, kept apart so that it
// takes no room in the caches.
type rare struct {
	chain uint32 // as in linkSegment
	gen   uint32 // distinguishes the uses of an entry if seq is restored
}

type segment struct {
	nodes [segLen]node
	rares [segLen]rare
}

// slab is the storage of entries.
type slab []*segment

func (s slab) at(i uint32) *node { return &s[i>>segBits].nodes[i&segMask] }

func (s slab) rare(i uint32) *rare { return &s[i>>segBits].rares[i&segMask] }

// grow makes room for entry i.
func (s *slab) grow(i uint32) {
	for int(i>>segBits) >= len(*s) {
		*s = append(*s, new(segment))
	}
}

// links are the places of the entries of a queue in the FIFOs of an index. They are dense, as every
// entry that comes or goes touches those of its neighbours.
type links []*linkSegment

type linkSegment struct {
	links  [segLen]link
	chains [segLen]uint32 // of a head without a lane: the next such head in the bucket
}

// grow makes room for entry i.
func (l *links) grow(i uint32) {
	for int(i>>segBits) >= len(*l) {
		*l = append(*l, new(linkSegment))
	}
}
