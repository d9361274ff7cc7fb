package collcheck

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// block returns the location of block i of a buffer.
func block(c *coll.Call, l *coll.Layout, i int) (off, n int) {
	if !c.Vector {
		return i * c.Bytes, c.Bytes
	}
	if l.Offsets == nil {
		for _, size := range l.Sizes[:i] {
			off += size
		}
		return off, l.Sizes[i]
	}
	return l.Offsets[i], l.Sizes[i]
}

// extent returns the length of a buffer with this layout.
func extent(c *coll.Call, l *coll.Layout) (end int) {
	for i := range c.Ranks {
		off, n := block(c, l, i)
		end = max(end, off+n)
	}
	return end
}

// ownBlock returns the size of the caller's block if only the root has the layout.
func ownBlock(c *coll.Call, l *coll.Layout) int {
	if c.Rank == c.Root && c.Vector {
		return l.Sizes[c.Rank]
	}
	return c.Bytes
}

// Buffers returns the lengths of the user's buffers of a call, in bytes.
func Buffers(c *coll.Call) (send, recv int) {
	root := c.Rank == c.Root
	switch c.Collective {
	case coll.Bcast:
		return 0, c.Bytes
	case coll.Reduce:
		send = c.Bytes
		if root {
			recv = c.Bytes
		}
	case coll.Allreduce, coll.Scan, coll.Exscan:
		send, recv = c.Bytes, c.Bytes
	case coll.Gather:
		send = ownBlock(c, &c.Recv)
		if root {
			recv = extent(c, &c.Recv)
		}
	case coll.Scatter:
		recv = ownBlock(c, &c.Send)
		if root {
			send = extent(c, &c.Send)
			if c.InPlace {
				recv = 0
			}
			return send, recv
		}
	case coll.Allgather:
		_, send = block(c, &c.Recv, c.Rank)
		recv = extent(c, &c.Recv)
	case coll.Alltoall:
		recv = extent(c, &c.Recv)
		if !c.InPlace {
			send = extent(c, &c.Send)
		}
	case coll.ReduceScatter:
		send = extent(c, &c.Recv)
		_, recv = block(c, &c.Recv, c.Rank)
		if c.InPlace {
			recv = send
		}
	}
	if c.InPlace && (root || !rooted(c)) {
		send = 0
	}
	return send, recv
}

func rooted(c *coll.Call) bool {
	return c.Collective == coll.Reduce || c.Collective == coll.Gather || c.Collective == coll.Scatter
}

// contribution returns the offset and length of the caller's contribution in its receive buffer, if it is in place.
func contribution(c *coll.Call) (off, n int) {
	switch c.Collective {
	case coll.Gather, coll.Allgather:
		return block(c, &c.Recv, c.Rank)
	case coll.Alltoall, coll.ReduceScatter:
		return 0, extent(c, &c.Recv)
	case coll.Barrier, coll.Scatter:
		return 0, 0
	}
	return 0, c.Bytes
}

// newSymbols fills the buffers with the contributions of the ranks.
func newSymbols(calls []coll.Call, programs []Program) *symbols {
	c := &calls[0]
	m := &symbols{elemSize: max(c.Elem, 1), ordered: c.Ordered, sets: newSets(len(calls)),
		bufs: make([][coll.Shared + 1][]symbol, len(calls))}
	switch c.Collective {
	case coll.Bcast, coll.Gather, coll.Scatter, coll.Allgather:
		m.writeOnce = true
	case coll.Alltoall:
		m.writeOnce = !c.InPlace
	}
	for r := range calls {
		c := &calls[r]
		send, recv := Buffers(c)
		b := &m.bufs[r]
		b[coll.SendBuf], b[coll.RecvBuf] = make([]symbol, send), make([]symbol, recv)
		b[coll.Scratch], b[coll.Shared] = make([]symbol, programs[r].Scratch), make([]symbol, c.Shared)
		set := m.sets.ranks(r, r)
		for i := range send {
			b[coll.SendBuf][i] = symbol{set, int32(i)}
		}
		inPlace := c.InPlace && (c.Rank == c.Root || !rooted(c)) && c.Collective != coll.Bcast
		if inPlace || c.Collective == coll.Bcast && c.Rank == c.Root {
			off, n := contribution(c)
			for i := range n {
				b[coll.RecvBuf][off+i] = symbol{set, int32(i)}
			}
		}
	}
	return m
}

// result returns the required final content of a rank's receive buffer. loose reports whether byte i may have any
// value.
func (m *symbols) result(calls []coll.Call, r int) (want []symbol, loose func(i int) bool) {
	c := &calls[r]
	_, n := Buffers(c)
	want = make([]symbol, n)
	fill := func(off, n int, set uint32, elem int) {
		for i := range n {
			want[off+i] = symbol{set, int32(elem + i)}
		}
	}
	loose = func(int) bool { return false }
	last := len(calls) - 1
	switch c.Collective {
	case coll.Bcast:
		fill(0, n, m.sets.ranks(c.Root, c.Root), 0)
	case coll.Reduce, coll.Allreduce:
		fill(0, n, m.sets.ranks(0, last), 0)
	case coll.Gather, coll.Allgather:
		if n == 0 {
			break
		}
		for i := range calls {
			off, size := block(c, &c.Recv, i)
			fill(off, size, m.sets.ranks(i, i), 0)
		}
	case coll.Scatter:
		root := &calls[c.Root]
		off, _ := block(root, &root.Send, r)
		fill(0, n, m.sets.ranks(c.Root, c.Root), off)
	case coll.Alltoall:
		for i := range calls {
			from := &calls[i]
			layout := &from.Send
			if from.InPlace {
				layout = &from.Recv
			}
			there, _ := block(from, layout, r)
			off, size := block(c, &c.Recv, i)
			fill(off, size, m.sets.ranks(i, i), there)
		}
	case coll.ReduceScatter:
		off, size := block(c, &c.Recv, r)
		fill(0, size, m.sets.ranks(0, last), off)
		loose = func(i int) bool { return i >= size }
	case coll.Scan:
		fill(0, n, m.sets.ranks(0, r), 0)
	case coll.Exscan:
		if r == 0 {
			loose = func(int) bool { return true }
			break
		}
		fill(0, n, m.sets.ranks(0, r-1), 0)
	}
	return want, loose
}

// verify compares all receive buffers with their required content.
func (m *symbols) verify(calls []coll.Call) error {
	for r := range calls {
		want, loose := m.result(calls, r)
		for i, have := range m.bufs[r][coll.RecvBuf] {
			if have == want[i] || loose(i) || want[i].set == 0 && calls[r].InPlace {
				continue
			}
			return scheduleError(r, 0, "byte %d of the result is %s, want %s", i, m.describe(have), m.describe(want[i]))
		}
	}
	return nil
}

func (m *symbols) describe(s symbol) string {
	if s.set == 0 {
		return "unwritten"
	}
	var ranks []int
	for r := range len(m.bufs) {
		if m.sets.bits[s.set][r/64]>>(r%64)&1 != 0 {
			ranks = append(ranks, r)
		}
	}
	return fmt.Sprintf("byte %d of ranks %v", s.elem, ranks)
}
