package datatype

import (
	"sort"
	"unsafe"
)

// Pack copies the data of count elements of type t from memory to packed. It starts at byte from of the elements' data,
// and continues until packed is full or the data ends. memory is the address of displacement 0. It returns the number
// of bytes copied. The caller must have checked count with Span.
func (t *Type) Pack(packed []byte, memory unsafe.Pointer, count, from int64) int {
	return t.transfer(packed, memory, count, from, true)
}

// Unpack copies packed data to count elements of type t in memory. It starts at byte from of the elements' data. It
// returns the number of bytes copied, which is at most the size of the elements.
func (t *Type) Unpack(memory unsafe.Pointer, count int64, packed []byte, from int64) int {
	return t.transfer(packed, memory, count, from, false)
}

// transfer copies between packed and count elements in memory, from data byte from on. It returns the number of bytes
// copied.
func (t *Type) transfer(packed []byte, memory unsafe.Pointer, count, from int64, pack bool) int {
	total := count * t.size
	if from >= total {
		return 0
	}
	packed = packed[:min(int64(len(packed)), total-from)]
	if len(packed) == 0 {
		return 0
	}
	all := t.layout.repeatWith(count, t.Extent(), t.originLayout)
	c := copier{memory, pack}
	c.copyRange(&all, all.offset, packed, from)
	return len(packed)
}

// copier copies in one direction, either from memory or to memory.
type copier struct {
	memory unsafe.Pointer
	pack   bool
}

// copyRange copies the data that a layout locates, starting at byte from of that data. The first iteration of the
// layout is at offset.
func (c *copier) copyRange(l *layout, offset int64, packed []byte, from int64) {
	i := from / l.iterationSize
	offset += i * l.stride
	if rest := from - i*l.iterationSize; rest > 0 || int64(len(packed)) < l.iterationSize {
		n := min(int64(len(packed)), l.iterationSize-rest)
		c.copyPartial(l, offset, packed[:n], rest)
		packed, offset = packed[n:], offset+l.stride
	}
	whole := int64(len(packed)) / l.iterationSize
	c.copyWhole(l, offset, packed[:whole*l.iterationSize], whole)
	if packed = packed[whole*l.iterationSize:]; len(packed) > 0 {
		c.copyPartial(l, offset+whole*l.stride, packed, 0)
	}
}

// copyPartial copies part of one iteration.
func (c *copier) copyPartial(l *layout, offset int64, packed []byte, from int64) {
	if l.block > 0 {
		c.copyBlock(offset+from, packed)
		return
	}
	i := sort.Search(len(l.starts), func(i int) bool { return l.starts[i] > from }) - 1
	for ; len(packed) > 0; i++ {
		p := &l.parts[i]
		at := from - l.starts[i]
		n := min(int64(len(packed)), p.size()-at)
		c.copyRange(p, offset+p.offset, packed[:n], at)
		packed, from = packed[n:], from+n
	}
}

// batchIterations is the number of iterations whose parts are copied together. It is small enough for this memory to
// stay in the L1 cache.
const batchIterations = 64

// copyWhole copies n complete iterations.
func (c *copier) copyWhole(l *layout, offset int64, packed []byte, n int64) {
	switch {
	case l.block > 0:
		c.copyBlocks(offset, l.stride, packed, l.block, l.block, n)
	case l.singleBlocks:
		for n > 0 {
			m := min(n, batchIterations)
			for i := range l.parts {
				p := &l.parts[i]
				c.copyBlocks(offset+p.offset, l.stride, packed[l.starts[i]:], l.iterationSize, p.block, m)
			}
			packed, offset, n = packed[m*l.iterationSize:], offset+m*l.stride, n-m
		}
	default:
		for range n {
			for i := range l.parts {
				p := &l.parts[i]
				size := p.size()
				c.copyWhole(p, offset+p.offset, packed[:size], p.iterations)
				packed = packed[size:]
			}
			offset += l.stride
		}
	}
}

// copyBlocks copies n blocks of equal length, which begin every stride bytes in memory and every step bytes in packed.
func (c *copier) copyBlocks(offset, stride int64, packed []byte, step, length, n int64) {
	switch {
	case n == 0:
	case n == 1 || stride == length && step == length:
		c.copyBlock(offset, packed[:length*n])
	case length == 4:
		copyWords[[4]byte](c, offset, stride, packed, step, n)
	case length == 8:
		copyWords[[8]byte](c, offset, stride, packed, step, n)
	case length == 16:
		copyWords[[16]byte](c, offset, stride, packed, step, n)
	default:
		for i := range n {
			c.copyBlock(offset+i*stride, packed[i*step:i*step+length])
		}
	}
}

// copyBlock copies one contiguous block.
func (c *copier) copyBlock(offset int64, packed []byte) {
	memory := unsafe.Slice((*byte)(unsafe.Add(c.memory, offset)), len(packed))
	if c.pack {
		copy(packed, memory)
	} else {
		copy(memory, packed)
	}
}

// copyWords is like copyBlocks, for block lengths that a processor can copy with one instruction, whether aligned or
// not.
func copyWords[W [4]byte | [8]byte | [16]byte](c *copier, offset, stride int64, packed []byte, step, n int64) {
	var word W
	_ = packed[(n-1)*step+int64(len(word))-1]
	memory, first := unsafe.Add(c.memory, offset), unsafe.Pointer(unsafe.SliceData(packed))
	if c.pack {
		for i := range n {
			*(*W)(unsafe.Add(first, i*step)) = *(*W)(unsafe.Add(memory, i*stride))
		}
		return
	}
	for i := range n {
		*(*W)(unsafe.Add(memory, i*stride)) = *(*W)(unsafe.Add(first, i*step))
	}
}
