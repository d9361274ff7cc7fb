package match

// Buckets come in segments, like entries.
const (
	bucketBits = 8
	bucketSeg  = 1 << bucketBits
	bucketMask = bucketSeg - 1
)

// table is a hash table of FIFOs that grows by linear hashing: one bucket is
// split at a time, so that no insertion pays for a rehash. It does not shrink.
type table struct {
	dir  []*[bucketSeg]bucket
	n    uint32 // buckets
	mask uint32 // the lowest 2^k-1 that covers the bucket numbers
	used int    // entries
}

func newTable() table {
	return table{dir: []*[bucketSeg]bucket{new([bucketSeg]bucket)}, n: bucketSeg, mask: bucketSeg - 1}
}

// bucket returns the bucket for a hash.
func (t *table) bucket(h uint64) *bucket {
	b := uint32(h) & t.mask
	if b >= t.n {
		b &= t.mask >> 1
	}
	return t.at(b)
}

func (t *table) at(b uint32) *bucket { return &t.dir[b>>bucketBits][b&bucketMask] }

// find returns the oldest entry with a key, or 0.
func (t *table) find(s nodes, key uint64) uint32 {
	h := hash(key)
	return s.find(t.bucket(h), h, key)
}

// enter and leave are those of nodes; h is the hash of the entry's key.
func (t *table) enter(s nodes, h uint64, i uint32, n *node) {
	t.used++
	for t.used > 2*int(t.n) {
		t.split(s)
	}
	s.enter(t.bucket(h), h, i, n)
}

func (t *table) leave(s nodes, h uint64, i uint32, n *node) {
	t.used--
	s.leave(t.bucket(h), h, i, n)
}

// split adds a bucket and shares out the one whose hashes it takes over.
func (t *table) split(s nodes) {
	if t.n > t.mask {
		t.mask = t.mask<<1 | 1
	}
	if int(t.n>>bucketBits) == len(t.dir) {
		t.dir = append(t.dir, new([bucketSeg]bucket))
	}
	from := t.at(t.n & (t.mask >> 1))
	t.n++
	old := *from
	*from = bucket{}
	for _, i := range old.heads {
		if i != 0 {
			t.place(i, s.at(i))
		}
	}
	for i := old.more; i != 0; {
		n := s.at(i)
		next := n.chain
		t.place(i, n)
		i = next
	}
}

func (t *table) place(i uint32, n *node) {
	h := hash(n.key)
	t.bucket(h).place(h, i, n)
}
