package collcheck

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// block returns the location of block i of a buffer.
func block(c *coll.Call, layout *coll.Layout, i int) (off, n int) {
	if !c.Vector {
		return i * c.Bytes, c.Bytes
	}
	if layout.Offsets == nil {
		for _, size := range layout.Sizes[:i] {
			off += size
		}
		return off, layout.Sizes[i]
	}
	return layout.Offsets[i], layout.Sizes[i]
}

// extent returns the length of a buffer with this layout.
func extent(c *coll.Call, l *coll.Layout) (end int) {
	for i := range c.Ranks {
		off, n := block(c, l, i)
		end = max(end, off+n)
	}
	return end
}

// ownBlock returns the size of the caller's block in a call in which only the root knows the layout.
func ownBlock(c *coll.Call, l *coll.Layout) int {
	if c.Rank == c.Root && c.Vector {
		return l.Sizes[c.Rank]
	}
	return c.Bytes
}

// Buffers returns the required lengths, in bytes, of the user's buffers in a call.
func Buffers(call *coll.Call) (send, recv int) {
	root := call.Rank == call.Root
	switch call.Collective {
	case coll.Bcast:
		return 0, call.Bytes
	case coll.Reduce:
		send = call.Bytes
		if root {
			recv = call.Bytes
		}
	case coll.Allreduce, coll.Scan, coll.Exscan:
		send, recv = call.Bytes, call.Bytes
	case coll.Gather:
		send = ownBlock(call, &call.Recv)
		if root {
			recv = extent(call, &call.Recv)
		}
	case coll.Scatter:
		recv = ownBlock(call, &call.Send)
		if root {
			send = extent(call, &call.Send)
			if call.InPlace {
				recv = 0
			}
			return send, recv
		}
	case coll.Allgather:
		_, send = block(call, &call.Recv, call.Rank)
		recv = extent(call, &call.Recv)
	case coll.Alltoall:
		recv = extent(call, &call.Recv)
		if !call.InPlace {
			send = extent(call, &call.Send)
		}
	case coll.ReduceScatter:
		send = extent(call, &call.Recv)
		_, recv = block(call, &call.Recv, call.Rank)
		if call.InPlace {
			recv = send
		}
	}
	if call.InPlace && (root || !rooted(call)) {
		send = 0
	}
	return send, recv
}

func rooted(c *coll.Call) bool {
	return c.Collective == coll.Reduce || c.Collective == coll.Gather || c.Collective == coll.Scatter
}

// contribution returns the offset and the length of an in-place contribution in the caller's receive buffer.
func contribution(call *coll.Call) (off, n int) {
	switch call.Collective {
	case coll.Gather, coll.Allgather:
		return block(call, &call.Recv, call.Rank)
	case coll.Alltoall, coll.ReduceScatter:
		return 0, extent(call, &call.Recv)
	case coll.Barrier, coll.Scatter:
		return 0, 0
	}
	return 0, call.Bytes
}

// newSymbols returns a memory with the initial contributions of all ranks.
func newSymbols(calls []coll.Call, programs []Program) *symbols {
	call := &calls[0]
	m := &symbols{elemSize: max(call.Elem, 1), ordered: call.Ordered, sets: newSets(len(calls)),
		bufs: make([][coll.Shared + 1][]symbol, len(calls))}
	switch call.Collective {
	case coll.Bcast, coll.Gather, coll.Scatter, coll.Allgather:
		m.writeOnce = true
	case coll.Alltoall:
		m.writeOnce = !call.InPlace
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

// result returns the required final content of a rank's receive buffer. loose reports whether byte i may have an
// arbitrary value.
func (m *symbols) result(calls []coll.Call, r int) (want []symbol, loose func(i int) bool) {
	call := &calls[r]
	_, n := Buffers(call)
	want = make([]symbol, n)
	fill := func(off, n int, set uint32, elem int) {
		for i := range n {
			want[off+i] = symbol{set, int32(elem + i)}
		}
	}
	loose = func(int) bool { return false }
	last := len(calls) - 1
	switch call.Collective {
	case coll.Bcast:
		fill(0, n, m.sets.ranks(call.Root, call.Root), 0)
	case coll.Reduce, coll.Allreduce:
		fill(0, n, m.sets.ranks(0, last), 0)
	case coll.Gather, coll.Allgather:
		if n == 0 {
			break
		}
		for i := range calls {
			off, size := block(call, &call.Recv, i)
			fill(off, size, m.sets.ranks(i, i), 0)
		}
	case coll.Scatter:
		root := &calls[call.Root]
		off, _ := block(root, &root.Send, r)
		fill(0, n, m.sets.ranks(call.Root, call.Root), off)
	case coll.Alltoall:
		for i := range calls {
			from := &calls[i]
			layout := &from.Send
			if from.InPlace {
				layout = &from.Recv
			}
			there, _ := block(from, layout, r)
			off, size := block(call, &call.Recv, i)
			fill(off, size, m.sets.ranks(i, i), there)
		}
	case coll.ReduceScatter:
		off, size := block(call, &call.Recv, r)
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

// verify returns an error unless all receive buffers have the required content.
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
