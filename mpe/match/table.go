package match

// Buckets are stored in segments, like entries.
const (
	bucketBits = 7
	bucketSeg  = 1 << bucketBits
	bucketMask = bucketSeg - 1
)

// table is a hash table of FIFOs that grows by linear hashing: one bucket is
// split at a time, so that no insertion pays for a rehash. It does not shrink.
type table struct {
	slab
	links links  // of an index; a queue's own table has its links in the nodes
	wild  uint64 // of an index: mask of the half of the keys to ignore
	dir   []*[bucketSeg]bucket
	n     uint32 // buckets
	mask  uint32 // the lowest 2^k-1 that covers all bucket numbers
	used  int    // FIFOs
}

// head is the oldest entry of a FIFO, and its location.
type head struct {
	n    *node
	b    *bucket
	i    uint32 // 0 if there is no entry
	lane uint32
}

func (t *table) init() {
	t.dir = []*[bucketSeg]bucket{new([bucketSeg]bucket)}
	t.n, t.mask = bucketSeg, bucketSeg-1
}

// bucket returns the bucket for a hash. The bucket's number is the hash under the mask, or, if no bucket has that
// number, the same without the top bit of the mask. Which of the two applies is unpredictable, so the code has no
// branch.
func (t *table) bucket(h uint64) *bucket {
	b := uint32(h) & t.mask
	b &= t.mask>>1 | uint32(int32(b-t.n)>>31)
	return t.bucketAt(b)
}

func (t *table) bucketAt(b uint32) *bucket { return &t.dir[b>>bucketBits][b&bucketMask] }

// link returns the position of entry i, whose node is n, in the FIFO of its key.
func (t *table) link(i uint32, n *node) *link {
	if t.wild == 0 {
		return &n.link
	}
	return &t.links[i>>segBits].links[i&segMask]
}

// chain returns the successor of entry i, which is a head without a lane.
func (t *table) chain(i uint32) *uint32 {
	if t.wild == 0 {
		return &t.rare(i).chain
	}
	return &t.links[i>>segBits].chains[i&segMask]
}

// find returns the head of the FIFO of a key.
func (t *table) find(key uint64) head {
	h := hash(key)
	b := t.bucket(h)
	l := lane(b.match(h))
	i := b.heads[l]
	n := t.at(i)
	if stranger(n.key|t.wild, key, i) {
		return t.search(b, h, key)
	}
	return head{n, b, i, l}
}

// locate returns the head at entry i; n is its node.
func (t *table) locate(i uint32, n *node) head {
	key := n.key | t.wild
	h := hash(key)
	b := t.bucket(h)
	if l := lane(b.match(h)); b.heads[l] == i {
		return head{n, b, i, l}
	}
	return t.search(b, h, key)
}

// stranger reports whether entry i exists and has another key. It compiles to one branch, because it is often
// practically random whether an entry exists.
func stranger(has, key uint64, i uint32) bool {
	x := has ^ key
	return int64((x|-x)&-uint64(i)) < 0
}

// search is find for a key that shares its tag with another key in the bucket, or whose bucket has more heads than
// lanes.
func (t *table) search(b *bucket, h, key uint64) head {
	for m := b.match(h); m != 0; m &= m - 1 {
		if i := b.heads[lane(m)]; t.at(i).key|t.wild == key {
			return head{t.at(i), b, i, lane(m)}
		}
	}
	i := b.heads[lanes]
	for i != 0 && t.at(i).key|t.wild != key {
		i = *t.chain(i)
	}
	return head{t.at(i), b, i, lanes}
}

// place makes entry i a head of bucket b; h is its hash.
func (t *table) place(b *bucket, h uint64, i uint32) {
	free := ^b.tags & topBits
	if free == 0 {
		*t.chain(i) = b.heads[lanes]
		b.heads[lanes] = i
		return
	}
	l := lane(free)
	b.tags |= tagOf(h) << (l * laneBits)
	b.heads[l] = i
}

// replace replaces head f by another head, or removes it if by is 0.
func (t *table) replace(f head, by uint32) {
	if f.lane < lanes {
		f.b.heads[f.lane] = by
		if by == 0 {
			f.b.free(f.lane)
		}
		return
	}
	p := &f.b.heads[lanes]
	for *p != f.i {
		p = t.chain(*p)
	}
	*p = *t.chain(f.i)
	if by != 0 {
		*t.chain(by) = *p
		*p = by
	}
}

// split adds a bucket, and redistributes the bucket that it splits.
func (t *table) split() {
	if t.n > t.mask {
		t.mask = t.mask<<1 | 1
	}
	if int(t.n>>bucketBits) == len(t.dir) {
		t.dir = append(t.dir, new([bucketSeg]bucket))
	}
	from := t.bucketAt(t.n & (t.mask >> 1))
	t.n++
	old := *from
	*from = bucket{}
	for _, i := range old.heads[:lanes] {
		if i != 0 {
			t.share(i)
		}
	}
	for i := old.heads[lanes]; i != 0; {
		next := *t.chain(i)
		t.share(i)
		i = next
	}
}

func (t *table) share(i uint32) {
	h := hash(t.at(i).key | t.wild)
	t.place(t.bucket(h), h, i)
}
