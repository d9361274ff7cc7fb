package collcheck

import "github.com/zrlmpi/zrlmpid/mpe/coll"

// hazards finds steps of a rank that access the same bytes although neither waits for the other. It visits each step
// once, and records for each byte the last writer and the readers since: the next access must wait for these steps, and
// thereby waits for all earlier accesses.
type hazards struct {
	// before contains a row of bits per step: the steps that it waits for, directly or indirectly. The memory is reused
	// for the next rank.
	before []uint64
	bytes  [4][]byteState
	nodes  []reader
}

// byteState is the state of a byte: the number of the step that wrote it last, and the index in nodes of its last
// reader since. Both count from 1.
type byteState struct{ writer, readers int32 }

// reader is a reader of a byte, linked to the previous reader.
type reader struct{ step, next int32 }

// check returns an error for the first step that conflicts with an earlier one. Its time grows with the number of bytes
// accessed, and its memory with the square of the number of steps.
func (h *hazards) check(rank int, program *Program) error {
	n := len(program.Steps)
	words := (n + 63) / 64
	if len(h.before) < n*words {
		h.before = make([]uint64, n*words)
	}
	for b := range h.bytes {
		clear(h.bytes[b])
	}
	h.nodes = append(h.nodes[:0], reader{})
	for i := range program.Steps {
		step := &program.Steps[i]
		row := h.before[i*words : (i+1)*words]
		if a := h.ancestors(row, step, i, words); a != 0 {
			return scheduleError(rank, i+1, "waits for step %d, which is not an earlier one", a)
		}
		for _, x := range accesses(step) {
			if x.n <= 0 || x.loc.Buf == coll.Blank || int(x.loc.Buf) >= len(h.bytes) {
				continue
			}
			if x.loc.Off < 0 {
				return scheduleError(rank, i+1, "%v at %d of the %v", step.Kind, x.loc.Off, x.loc.Buf)
			}
			if other := h.touch(x, i+1, row); other != 0 {
				return scheduleError(rank, i+1, "%v touches the same bytes of the %v as step %d, a %v, and does not wait for it",
					step.Kind, x.loc.Buf, other, program.Steps[other-1].Kind)
			}
		}
	}
	return nil
}

// ancestors fills in a step's row. It returns 0, or an invalid dependency: one that is not an earlier step.
func (h *hazards) ancestors(row []uint64, s *coll.Step, i, words int) int {
	clear(row)
	for _, a := range s.After {
		switch {
		case a == 0:
		case a == coll.AllEarlier:
			for w := range i / 64 {
				row[w] = ^uint64(0)
			}
			row[i/64] |= 1<<(i%64) - 1
		case a < 0 || a > i:
			return a
		default:
			row[(a-1)/64] |= 1 << ((a - 1) % 64)
			for w, b := range h.before[(a-1)*words : a*words] {
				row[w] |= b
			}
		}
	}
	return 0
}

// touch records an access of a step. It returns 0, or a step that this step must wait for but does not. That is the
// step itself if both of its accesses are to the same bytes.
func (h *hazards) touch(x access, step int, row []uint64) int {
	waits := func(other int32) bool { return other == 0 || row[(other-1)/64]>>((other-1)%64)&1 != 0 }
	b := &h.bytes[x.loc.Buf]
	for end := x.loc.Off + x.n; len(*b) < end; {
		*b = append(*b, byteState{})
	}
	for i := range x.n {
		state := &(*b)[x.loc.Off+i]
		if !waits(state.writer) {
			return int(state.writer)
		}
		if !x.write {
			h.nodes = append(h.nodes, reader{int32(step), state.readers})
			state.readers = int32(len(h.nodes) - 1)
			continue
		}
		for r := state.readers; r != 0; r = h.nodes[r].next {
			if !waits(h.nodes[r].step) {
				return int(h.nodes[r].step)
			}
		}
		state.writer, state.readers = int32(step), 0
	}
	return 0
}
