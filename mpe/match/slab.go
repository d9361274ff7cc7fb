package match

// Entries are numbered from 1 and live in segments, so that growth copies
// nothing. 0 is no entry.
const (
	segBits = 8
	segLen  = 1 << segBits
	segMask = segLen - 1
)

// node is an entry as one table sees it; two to a cache line. Nodes with equal
// keys form a FIFO, and the heads of the FIFOs in one bucket form its chain.
type node struct {
	key   uint64
	seq   uint64
	chain uint32 // of a head: the next head in the bucket; of another: notHead
	next  uint32 // in the FIFO, or in the free list
	prev  uint32 // in the FIFO; a head's is the tail
	gen   uint32 // counts how often the entry was freed
}

const notHead = ^uint32(0)

// nodes are the nodes of a table.
type nodes []*[segLen]node

func (s nodes) at(i uint32) *node { return &s[i>>segBits][i&segMask] }

// age is the place of an entry in the order of its queue.
type age struct{ older, younger uint32 }

// slab is the storage of a queue's entries.
type slab struct {
	nodes
	ages []*[segLen]age
	free uint32 // head of the list of freed entries
	used uint32 // entries up to this number have been handed out
}

func (s *slab) age(i uint32) *age { return &s.ages[i>>segBits][i&segMask] }

// alloc returns an entry: the one freed last, for its cache lines, or a new one.
func (s *slab) alloc() uint32 {
	if i := s.free; i != 0 {
		s.free = s.at(i).next
		return i
	}
	s.used++
	if int(s.used>>segBits) >= len(s.nodes) {
		s.nodes = append(s.nodes, new([segLen]node))
		s.ages = append(s.ages, new([segLen]age))
	}
	return s.used
}

// release puts an entry into the free list; its handles become stale.
func (s *slab) release(i uint32) {
	n := s.at(i)
	n.gen++
	n.next = s.free
	s.free = i
}
