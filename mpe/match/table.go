package match

// Buckets are stored in segments, like entries.
const (
	bucketBits = 7
	bucketSeg  = 1 << bucketBits
	bucketMask = bucketSeg - 1
)

// table is a hash table of FIFOs that grows by linear hashing: one bucket is split at a time, so that no insertion pays
// for a rehash. It does not shrink.
type table struct {
	slab
	links       links  // of an index; a queue's main table stores its links in the nodes
	wildMask    uint64 // of an index: mask of the ignored half of the keys
	buckets     []*[bucketSeg]bucket
	bucketCount uint32 // buckets
	mask        uint32 // the lowest 2^k-1 that covers all bucket numbers
	fifoCount   int    // FIFOs
}

// head describes the oldest entry of a FIFO, and where the table stores it.
type head struct {
	n    *node
	b    *bucket
	i    uint32 // 0 if there is no entry
	lane uint32
}

func (t *table) init() {
	t.buckets = []*[bucketSeg]bucket{new([bucketSeg]bucket)}
	t.bucketCount, t.mask = bucketSeg, bucketSeg-1
}

// bucket returns the bucket for a hash. Its number is hash & mask, without the top bit of mask if that bucket does not
// exist yet. The code does not branch, because the processor could not predict which case applies.
func (t *table) bucket(h uint64) *bucket {
	b := uint32(h) & t.mask
	b &= t.mask>>1 | uint32(int32(b-t.bucketCount)>>31)
	return t.bucketAt(b)
}

func (t *table) bucketAt(b uint32) *bucket { return &t.buckets[b>>bucketBits][b&bucketMask] }

// link returns the link of entry i, whose node is n, in the FIFO of its key.
func (t *table) link(i uint32, n *node) *link {
	if t.wildMask == 0 {
		return &n.link
	}
	return &t.links[i>>segBits].links[i&segMask]
}

// chain returns the successor of entry i in its bucket's list of heads without a lane.
func (t *table) chain(i uint32) *uint32 {
	if t.wildMask == 0 {
		return &t.cold(i).chain
	}
	return &t.links[i>>segBits].chains[i&segMask]
}

// find returns the head of the FIFO that belongs to a key. If there is none, it returns a head with i = 0.
func (t *table) find(key uint64) head {
	h := hash(key)
	b := t.bucket(h)
	l := lane(b.match(h))
	i := b.heads[l]
	n := t.nodeAt(i)
	if isOther(n.key|t.wildMask, key, i) {
		return t.search(b, h, key)
	}
	return head{n, b, i, l}
}

// locate returns the head for entry i, which is the oldest in its FIFO. n is the entry's node.
func (t *table) locate(i uint32, n *node) head {
	key := n.key | t.wildMask
	h := hash(key)
	b := t.bucket(h)
	if l := lane(b.match(h)); b.heads[l] == i {
		return head{n, b, i, l}
	}
	return t.search(b, h, key)
}

// isOther reports whether entry i exists and its key, passed as the parameter has, differs from key. It compiles to a
// single branch: a separate branch for i would often be unpredictable.
func isOther(has, key uint64, i uint32) bool {
	x := has ^ key
	return int64((x|-x)&-uint64(i)) < 0
}

// search is the slow path of find, for a key that shares its tag with another key in the bucket, or that is not in a
// lane.
func (t *table) search(b *bucket, h, key uint64) head {
	for m := b.match(h); m != 0; m &= m - 1 {
		if i := b.heads[lane(m)]; t.nodeAt(i).key|t.wildMask == key {
			return head{t.nodeAt(i), b, i, lane(m)}
		}
	}
	i := b.heads[lanes]
	for i != 0 && t.nodeAt(i).key|t.wildMask != key {
		i = *t.chain(i)
	}
	return head{t.nodeAt(i), b, i, lanes}
}

// addHead adds entry i, whose hash is h, to bucket b as the head of a new FIFO.
func (t *table) addHead(b *bucket, h uint64, i uint32) {
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

// replace replaces the head f by the entry numbered by, or removes it if by is 0.
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

// splitBucket adds a bucket, and distributes the heads of an existing bucket between the two.
func (t *table) splitBucket() {
	if t.bucketCount > t.mask {
		t.mask = t.mask<<1 | 1
	}
	if int(t.bucketCount>>bucketBits) == len(t.buckets) {
		t.buckets = append(t.buckets, new([bucketSeg]bucket))
	}
	from := t.bucketAt(t.bucketCount & (t.mask >> 1))
	t.bucketCount++
	old := *from
	*from = bucket{}
	for _, i := range old.heads[:lanes] {
		if i != 0 {
			t.rehash(i)
		}
	}
	for i := old.heads[lanes]; i != 0; {
		next := *t.chain(i)
		t.rehash(i)
		i = next
	}
}

func (t *table) rehash(i uint32) {
	h := hash(t.nodeAt(i).key | t.wildMask)
	t.addHead(t.bucket(h), h, i)
}
