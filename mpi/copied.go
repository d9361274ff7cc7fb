package mpi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Block is one rank's part of a buffer: Count elements of a datatype. Displacement 0 of the first element is
// Offset bytes from the buffer's address.
type Block struct {
	Count  int64
	Offset int64
	Of     *datatype.Type
}

// Blocks is a buffer with one block for each rank. Blocks of a receive buffer must not overlap.
type Blocks struct {
	at      unsafe.Pointer
	of      []Block
	length  int64 // has the same meaning as in Buffer
	inPlace bool
	// each, if not nil, is the datatype of the elements of a slice. Rank i then has counts[i] elements at
	// displs[i], or if displs is nil, the blocks follow each other. If each is set, of is nil.
	each           *datatype.Type
	counts, displs []int
}

// InPlaceBlocks is InPlace for Alltoallv and Alltoallw.
var InPlaceBlocks = Blocks{inPlace: true}

// TypedBlocks returns blocks in a slice, with counts[i] elements of a datatype for rank i. A block begins
// displs[i] extents from the beginning of the slice, or where the previous block ends if displs is nil.
func TypedBlocks[T Element](buf []T, counts, displs []int, t *datatype.Type) Blocks {
	b := Blocks{at: unsafe.Pointer(unsafe.SliceData(buf)), length: int64(len(view(buf)))}
	if displs != nil && len(displs) != len(counts) {
		return b // a wrong number of blocks, which the call will reject
	}
	at := 0
	for i, n := range counts {
		if displs != nil {
			at = displs[i]
		}
		block := Block{Count: int64(n), Of: t}
		if t != nil {
			block.Offset = int64(at) * t.Extent()
		}
		b.of = append(b.of, block)
		at += n
	}
	return b
}

// blocksOf returns blocks in a slice, one for each rank.
func blocksOf[T Element](buf []T, counts, displs []int) Blocks {
	return Blocks{
		at: unsafe.Pointer(unsafe.SliceData(buf)), length: int64(len(view(buf))),
		each: TypeOf[T](), counts: counts, displs: displs,
	}
}

// slice returns the memory of blocks that were made by blocksOf.
func (b *Blocks) slice() []byte { return unsafe.Slice((*byte)(b.at), b.length) }

// buffer returns the buffer of block i.
func (b *Blocks) buffer(i int) Buffer {
	k := b.of[i]
	one := Buffer{at: b.at, count: k.Count, of: k.Of, length: unknownLength}
	switch {
	case k.Count == 0: // any address is valid
	case b.length >= 0 && (k.Offset < 0 || k.Offset > b.length):
		one.length = 0 // no element is inside
	default:
		one.at = unsafe.Add(b.at, k.Offset)
		if b.length >= 0 {
			one.length = b.length - k.Offset
		}
	}
	return one
}

// copied holds packed copies of elements that are not contiguous.
type copied struct {
	packed []byte
	// back lists the buffers to which packed copies must be unpacked when the call is done.
	back []placed
}

// placed is a buffer, and the offset of its elements in the packed copy.
type placed struct {
	Buffer
	offset int
}

// over returns the memory, emptied so that another call can use it.
func (c *copied) over() copied {
	clear(c.back)
	return copied{packed: c.packed[:0], back: c.back[:0]}
}

// reserve ensures that n more bytes fit. It may move the existing bytes.
func (c *copied) reserve(n int) {
	if at := len(c.packed); cap(c.packed)-at < n {
		c.packed = append(make([]byte, 0, at+n), c.packed...)
	}
}

// add appends space for the packed elements of a buffer, and returns that space. If load is set, add packs the
// elements into it.
func (c *copied) add(b *Buffer, load, back bool) []byte {
	at, n := len(c.packed), int(b.count*b.of.Size())
	c.reserve(n)
	c.packed = c.packed[:at+n]
	room := c.packed[at : at+n]
	if load {
		b.of.Pack(room, b.at, b.count, 0)
	}
	if back {
		c.back = append(c.back, placed{*b, at})
	}
	return room
}

// place unpacks received elements into their buffers.
func (x *collectiveCall) place() {
	c := &x.received
	for i := range c.back {
		b := &c.back[i]
		b.of.Unpack(b.at, b.count, c.packed[b.offset:], 0)
	}
}

// contents returns the elements of a buffer as contiguous bytes, either the buffer's own memory or a packed
// copy. load must be set if the elements are sent, and back if they are received.
func (x *collectiveCall) contents(b *Buffer, load, back bool) []byte {
	if x.err != nil {
		return nil
	}
	if b.inPlace() {
		x.refuse(ErrArg, "InPlace is not for this buffer of this rank")
		return nil
	}
	if bytes := b.dense(); bytes != nil {
		return bytes
	}
	bytes, ok, err := b.whole(&x.call)
	if err != nil {
		x.err = err
		return nil
	}
	if ok {
		return bytes
	}
	if back {
		return x.received.add(b, load, true)
	}
	return x.sent.add(b, load, false)
}

// blocks is like contents, but for one block per rank. It also returns the layout of the blocks.
func (x *collectiveCall) blocks(name string, b *Blocks, load, back bool) ([]byte, coll.Layout) {
	ranks := x.dev.Call.Ranks
	x.dev.Call.Vector = true
	if x.err != nil {
		return nil, coll.Layout{}
	}
	if b.inPlace {
		x.refuse(ErrArg, "InPlaceBlocks is not for %s of this rank", name)
		return nil, coll.Layout{}
	}
	if b.each != nil {
		all := b.slice()
		return all, x.layout(name, all, b.counts, b.displs, back)
	}
	if len(b.of) != ranks {
		x.refuse(ErrCount, "there are %d blocks in %s for %d ranks", len(b.of), name, ranks)
		return nil, coll.Layout{}
	}
	l := coll.Layout{Sizes: x.memory(ranks), Offsets: x.memory(ranks)}
	var begin, end, total int64 // in bytes from b.at
	whole, empty := true, true
	for i := range ranks {
		one := b.buffer(i)
		_, ok, err := one.whole(&x.call)
		if err != nil {
			x.refuse(ClassOf(err), "the block of rank %d in %s: %w", i, name, err)
			return nil, coll.Layout{}
		}
		n := one.count * one.of.Size()
		l.Sizes[i] = int(n)
		total += n
		if n%int64(x.elem.size) != 0 { // the blocks have different datatypes
			x.elem.size, x.dev.Call.Elem = 1, 1
		}
		if n == 0 {
			continue
		}
		whole = whole && ok
		offset, _ := one.of.Contiguous(one.count)
		offset += b.of[i].Offset
		l.Offsets[i] = int(offset)
		if empty {
			begin, end, empty = offset, offset+n, false
		}
		begin, end = min(begin, offset), max(end, offset+n)
	}
	if whole {
		for i, n := range l.Sizes {
			if n > 0 {
				l.Offsets[i] -= int(begin)
			}
		}
		if back && b.length >= 0 { // otherwise the caller is responsible
			x.apart(name, &l)
		}
		all := Buffer{at: b.at}
		return all.bytes(begin, end-begin), l
	}
	to := &x.sent
	if back {
		to = &x.received
	}
	at := len(to.packed)
	to.reserve(int(total)) // one allocation for all blocks
	next := 0
	for i := range ranks {
		l.Offsets[i] = next
		if l.Sizes[i] > 0 {
			one := b.buffer(i)
			next += len(to.add(&one, load, back))
		}
	}
	return to.packed[at : at+next], l
}

// first returns the datatype of the first block.
func (b *Blocks) first() *datatype.Type {
	if len(b.of) == 0 {
		return b.each
	}
	return b.of[0].Of
}

// both returns the send and the receive memory of a call. They are the same if the call is in place.
func (x *collectiveCall) both(send, recv *Buffer) (from, to []byte) {
	to = x.contents(recv, send.inPlace(), true)
	if send.inPlace() {
		return to, to
	}
	return x.contents(send, true, false), to
}
