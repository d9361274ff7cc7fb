package match

// Entries are numbered from 1 and stored in segments, so that growth copies nothing. Entry 0 is a sentinel: its node
// closes the ring of the queue's order, and lookups that find nothing read it.
const (
	segBits = 8
	segLen  = 1 << segBits
	segMask = segLen - 1
)

// node is an entry of a queue. A cache line holds two nodes.
type node struct {
	key, seq uint64
	link     // in the FIFO of its key, or in the free list
	// older and younger are the entry's neighbours in the queue's order, a ring that begins and ends at entry 0.
	older, younger uint32
}

// link locates an entry in a FIFO by its neighbours.
type link struct {
	next uint32
	prev uint32 // in a head, the number of the tail ORed with headBit
}

// headBit marks the link of the oldest entry of a FIFO.
const headBit = 1 << 31

const (
	noKey = 0xFFFFFFFE_FFFFFFFE // not a valid key
	never = 1<<61 - 1           // above every seq
)

// coldFields holds the rarely used fields of an entry. They are stored separately from the nodes, so that they do not
// fill up the cache lines of the nodes.
type coldFields struct {
	chain uint32 // as in linkSegment
	gen   uint32 // distinguishes entries restored with the same seq
}

// segment holds consecutive entries. It never moves, so pointers to nodes stay valid while the slab grows.
type segment struct {
	nodes [segLen]node
	cold  [segLen]coldFields
}

// slab is the storage of entries.
type slab []*segment

func (s slab) nodeAt(i uint32) *node { return &s[i>>segBits].nodes[i&segMask] }

func (s slab) cold(i uint32) *coldFields { return &s[i>>segBits].cold[i&segMask] }

// grow allocates memory up to entry i.
func (s *slab) grow(i uint32) {
	for int(i>>segBits) >= len(*s) {
		*s = append(*s, new(segment))
	}
}

// links holds the links of a queue's entries in the FIFOs of an index. They are stored densely, because adding or
// removing an entry also accesses the links of its neighbours.
type links []*linkSegment

type linkSegment struct {
	links  [segLen]link
	chains [segLen]uint32 // for a head without a lane, the next such head in the bucket
}

// grow allocates memory up to entry i.
func (l *links) grow(i uint32) {
	for int(i>>segBits) >= len(*l) {
		*l = append(*l, new(linkSegment))
	}
}
