package collcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// symbol is the content of a byte: the combination of byte number elem of the contributions of a set of ranks. The zero
// symbol is an unwritten byte.
type symbol struct {
	set  uint32
	elem int32
}

// symbols is a memory that holds contributions.
type symbols struct {
	elemSize int
	ordered  bool
	// writeOnce means that no byte of a receive buffer may be written twice.
	writeOnce bool
	bufs      [][coll.Shared + 1][]symbol
	sets      sets
}

// sets assigns numbers to sets of ranks, counting from 1.
type sets struct {
	words  int
	bits   [][]uint64
	number map[string]uint32
	unions map[[2]uint32]uint32
}

func newSets(ranks int) sets {
	return sets{words: (ranks + 63) / 64, bits: [][]uint64{nil}, number: map[string]uint32{},
		unions: map[[2]uint32]uint32{}}
}

// numberOf returns the number of a set, so that two sets are equal if their numbers are. It keeps set.
func (s *sets) numberOf(set []uint64) uint32 {
	key := make([]byte, 0, 8*s.words)
	for _, w := range set {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	n, ok := s.number[string(key)]
	if !ok {
		n = uint32(len(s.bits))
		s.bits = append(s.bits, set)
		s.number[string(key)] = n
	}
	return n
}

// ranks returns the set of ranks first to last.
func (s *sets) ranks(first, last int) uint32 {
	set := make([]uint64, s.words)
	for r := first; r <= last; r++ {
		set[r/64] |= 1 << (r % 64)
	}
	return s.numberOf(set)
}

// bounds returns the lowest and the highest rank of a set.
func (s *sets) bounds(n uint32) (low, high int) {
	low = -1
	for i, w := range s.bits[n] {
		if w != 0 {
			if low < 0 {
				low = i*64 + bits.TrailingZeros64(w)
			}
			high = i*64 + 63 - bits.LeadingZeros64(w)
		}
	}
	return low, high
}

// union returns the union of two sets. It returns an error unless they are disjoint and, if ordered is set, adjacent.
func (s *sets) union(left, right uint32, ordered bool) (uint32, error) {
	if n, ok := s.unions[[2]uint32{left, right}]; ok {
		return n, nil
	}
	set := make([]uint64, s.words)
	for i := range set {
		if twice := s.bits[left][i] & s.bits[right][i]; twice != 0 {
			return 0, fmt.Errorf("the contribution of rank %d comes twice", i*64+bits.TrailingZeros64(twice))
		}
		set[i] = s.bits[left][i] | s.bits[right][i]
	}
	if ordered {
		_, last := s.bounds(left)
		if first, _ := s.bounds(right); first != last+1 {
			return 0, fmt.Errorf("contributions up to rank %d are combined with contributions from rank %d on", last,
				first)
		}
	}
	n := s.numberOf(set)
	s.unions[[2]uint32{left, right}] = n
	return n, nil
}

// errUnwritten is the error of reads that dataMemory cannot detect, because memory there always has a value.
var errUnwritten = errors.New("reads bytes that were never written")

// view returns n bytes of a buffer.
func (m *symbols) view(rank int, at coll.Loc, n int) ([]symbol, error) {
	if at.Buf < coll.SendBuf || at.Buf > coll.Shared || at.Buf == coll.Blank {
		return nil, fmt.Errorf("buffer %d does not exist", at.Buf)
	}
	b := m.bufs[rank][at.Buf]
	if at.Off < 0 || n < 0 || at.Off > len(b)-n {
		return nil, fmt.Errorf("%d bytes at %d of the %v, which has %d", n, at.Off, at.Buf, len(b))
	}
	return b[at.Off : at.Off+n], nil
}

// move implements memory. Unlike that of dataMemory, it rejects reads of unwritten bytes and writes to a send buffer.
func (m *symbols) move(fromRank int, from coll.Loc, rank int, into coll.Loc, n int) error {
	if from.Buf == coll.Blank && into.Buf == coll.Blank {
		return nil
	}
	src, err := m.view(fromRank, from, n)
	if err != nil {
		return err
	}
	dst, err := m.view(rank, into, n)
	if err != nil {
		return err
	}
	if into.Buf == coll.SendBuf {
		return errors.New("writes to the send buffer")
	}
	for i := range src {
		if src[i].set == 0 {
			return errUnwritten
		}
		if m.writeOnce && into.Buf == coll.RecvBuf && dst[i].set != 0 {
			return fmt.Errorf("byte %d of the receive buffer is written twice", into.Off+i)
		}
	}
	copy(dst, src)
	return nil
}

// reduce implements memory. Two bytes may be combined only if they are the same byte of the contributions of disjoint
// sets of ranks.
func (m *symbols) reduce(fromRank, rank int, step *coll.Step) error {
	from, with, into, err := operands(m.view, fromRank, rank, step)
	if err != nil {
		return err
	}
	right := step.Kind == coll.StepReduceRight
	switch {
	case step.Into.Buf == coll.SendBuf || right && step.From.Buf != coll.Scratch:
		return errors.New("writes to a user buffer that it must not change")
	case step.Len%m.elemSize != 0:
		return fmt.Errorf("%d bytes are not whole elements", step.Len)
	}
	for i := range into {
		a, b := from[i], with[i]
		switch {
		case a.set == 0 || b.set == 0:
			return errUnwritten
		case a.elem != b.elem || (int(a.elem)-i)%m.elemSize != 0:
			return fmt.Errorf("combines byte %d of contributions with byte %d", a.elem, b.elem)
		}
		if right {
			a, b = b, a
			from[i] = symbol{}
		}
		set, err := m.sets.union(a.set, b.set, m.ordered)
		if err != nil {
			return err
		}
		into[i] = symbol{set: set, elem: a.elem}
	}
	return nil
}
