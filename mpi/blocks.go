package mpi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Block is one rank's part of a buffer: Count elements of a datatype. Displacement 0 of the first element is
// Offset bytes from the buffer's address.
type Block struct {
	Count    int64
	Offset   int64
	Datatype *datatype.Type
}

// Blocks is a buffer with one block for each rank. Blocks of a receive buffer must not overlap.
type Blocks struct {
	base    unsafe.Pointer
	blocks  []Block
	length  int64 // has the same meaning as in Buffer
	inPlace bool
	// sliceType is the datatype of a slice's elements, or nil if blocks describes the blocks. Rank i has counts[i]
	// elements at displs[i], or directly after the previous rank's if displs is nil.
	sliceType      *datatype.Type
	counts, displs []int
}

// InPlaceBlocks is InPlace for Alltoallv and Alltoallw.
var InPlaceBlocks = Blocks{inPlace: true}

// TypedBlocks returns blocks in a slice, with counts[i] elements of a datatype for rank i. A block begins
// displs[i] extents from the beginning of the slice, or where the previous block ends if displs is nil.
func TypedBlocks[T Element](buf []T, counts, displs []int, t *datatype.Type) Blocks {
	blocks := Blocks{base: unsafe.Pointer(unsafe.SliceData(buf)), length: int64(len(asBytes(buf)))}
	if displs != nil && len(displs) != len(counts) {
		return blocks // a wrong number of blocks, which the call will reject
	}
	at := 0
	for i, n := range counts {
		if displs != nil {
			at = displs[i]
		}
		block := Block{Count: int64(n), Datatype: t}
		if t != nil {
			block.Offset = int64(at) * t.Extent()
		}
		blocks.blocks = append(blocks.blocks, block)
		at += n
	}
	return blocks
}

// blocksOf returns blocks in a slice, one for each rank.
func blocksOf[T Element](buf []T, counts, displs []int) Blocks {
	return Blocks{
		base: unsafe.Pointer(unsafe.SliceData(buf)), length: int64(len(asBytes(buf))),
		sliceType: TypeOf[T](), counts: counts, displs: displs,
	}
}

// sliceBytes returns the memory of blocks that were made by blocksOf.
func (b *Blocks) sliceBytes() []byte { return unsafe.Slice((*byte)(b.base), b.length) }

// buffer returns the buffer of block i.
func (b *Blocks) buffer(i int) Buffer {
	block := b.blocks[i]
	one := Buffer{base: b.base, count: block.Count, datatype: block.Datatype, length: unknownLength}
	switch {
	case block.Count == 0: // any address is valid
	case b.length >= 0 && (block.Offset < 0 || block.Offset > b.length):
		one.length = 0 // no element is inside
	default:
		one.base = unsafe.Add(b.base, block.Offset)
		if b.length >= 0 {
			one.length = b.length - block.Offset
		}
	}
	return one
}

// packedCopies holds packed copies of non-contiguous elements.
type packedCopies struct {
	packed []byte
	// unpackTo lists the buffers into which packed copies must be unpacked when the call is done.
	unpackTo []unpackTarget
}

// unpackTarget is a buffer to unpack into, with the offset of its elements in the packed copy.
type unpackTarget struct {
	Buffer
	offset int
}

// emptied returns the copies without their contents. They keep their memory, so that another call can reuse it.
func (c *packedCopies) emptied() packedCopies {
	clear(c.unpackTo)
	return packedCopies{packed: c.packed[:0], unpackTo: c.unpackTo[:0]}
}

// reserve ensures that there is space for n more bytes. It may move the existing bytes.
func (c *packedCopies) reserve(n int) {
	if at := len(c.packed); cap(c.packed)-at < n {
		c.packed = append(make([]byte, 0, at+n), c.packed...)
	}
}

// add appends space for the packed elements of a buffer and returns that space. If load is set, add packs the elements
// into the space. If back is set, unpackReceived will unpack them from there.
func (c *packedCopies) add(buffer *Buffer, load, back bool) []byte {
	at, n := len(c.packed), int(buffer.count*buffer.datatype.Size())
	c.reserve(n)
	c.packed = c.packed[:at+n]
	room := c.packed[at : at+n]
	if load {
		buffer.datatype.Pack(room, buffer.base, buffer.count, 0)
	}
	if back {
		c.unpackTo = append(c.unpackTo, unpackTarget{*buffer, at})
	}
	return room
}

// unpackReceived unpacks received elements into their buffers.
func (x *collectiveCall) unpackReceived() {
	c := &x.recvCopies
	for i := range c.unpackTo {
		b := &c.unpackTo[i]
		b.datatype.Unpack(b.base, b.count, c.packed[b.offset:], 0)
	}
}

// contiguousBytes returns the elements of a buffer as contiguous bytes, either the buffer's own memory or a packed
// copy. load must be set if the elements are sent, and back if they are received.
func (x *collectiveCall) contiguousBytes(buffer *Buffer, load, back bool) []byte {
	if x.err != nil {
		return nil
	}
	if buffer.inPlace() {
		x.recordError(ErrArg, "InPlace is not for this buffer of this rank")
		return nil
	}
	if bytes := buffer.dense(); bytes != nil {
		return bytes
	}
	bytes, ok, err := buffer.contiguous(&x.call)
	if err != nil {
		x.err = err
		return nil
	}
	if ok {
		return bytes
	}
	if back {
		return x.recvCopies.add(buffer, load, true)
	}
	return x.sentCopies.add(buffer, load, false)
}

// contiguousBlocks is like contiguousBytes, but for one block per rank. It also returns the layout of the blocks.
func (x *collectiveCall) contiguousBlocks(name string, blocks *Blocks, load, back bool) ([]byte, coll.Layout) {
	ranks := x.devOp.Call.Ranks
	x.devOp.Call.Vector = true
	if x.err != nil {
		return nil, coll.Layout{}
	}
	if blocks.inPlace {
		x.recordError(ErrArg, "InPlaceBlocks is not for %s of this rank", name)
		return nil, coll.Layout{}
	}
	if blocks.sliceType != nil {
		all := blocks.sliceBytes()
		return all, x.blockLayout(name, all, blocks.counts, blocks.displs, back)
	}
	if len(blocks.blocks) != ranks {
		x.recordError(ErrCount, "there are %d blocks in %s for %d ranks", len(blocks.blocks), name, ranks)
		return nil, coll.Layout{}
	}
	layout := coll.Layout{Sizes: x.allocInts(ranks), Offsets: x.allocInts(ranks)}
	var begin, end, total int64 // in bytes from blocks.base
	whole, empty := true, true
	for i := range ranks {
		one := blocks.buffer(i)
		_, ok, err := one.contiguous(&x.call)
		if err != nil {
			x.recordError(ClassOf(err), "the block of rank %d in %s: %w", i, name, err)
			return nil, coll.Layout{}
		}
		n := one.count * one.datatype.Size()
		layout.Sizes[i] = int(n)
		total += n
		if n%int64(x.elem.size) != 0 { // the blocks have different datatypes
			x.elem.size, x.devOp.Call.Elem = 1, 1
		}
		if n == 0 {
			continue
		}
		whole = whole && ok
		offset, _ := one.datatype.Contiguous(one.count)
		offset += blocks.blocks[i].Offset
		layout.Offsets[i] = int(offset)
		if empty {
			begin, end, empty = offset, offset+n, false
		}
		begin, end = min(begin, offset), max(end, offset+n)
	}
	if whole {
		for i, n := range layout.Sizes {
			if n > 0 {
				layout.Offsets[i] -= int(begin)
			}
		}
		if back && blocks.length >= 0 { // otherwise the caller is responsible
			x.checkOverlap(name, &layout)
		}
		all := Buffer{base: blocks.base}
		return all.bytes(begin, end-begin), layout
	}
	to := &x.sentCopies
	if back {
		to = &x.recvCopies
	}
	at := len(to.packed)
	to.reserve(int(total)) // one allocation for all blocks
	next := 0
	for i := range ranks {
		layout.Offsets[i] = next
		if layout.Sizes[i] > 0 {
			one := blocks.buffer(i)
			next += len(to.add(&one, load, back))
		}
	}
	return to.packed[at : at+next], layout
}

// firstType returns the datatype of the first block in a buffer.
func (b *Blocks) firstType() *datatype.Type {
	if len(b.blocks) == 0 {
		return b.sliceType
	}
	return b.blocks[0].Datatype
}

// bufferPair returns the memory from which a call sends and the memory into which it receives. They are the same if the
// call is in place.
func (x *collectiveCall) bufferPair(send, recv *Buffer) (from, to []byte) {
	to = x.contiguousBytes(recv, send.inPlace(), true)
	if send.inPlace() {
		return to, to
	}
	return x.contiguousBytes(send, true, false), to
}
