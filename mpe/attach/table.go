package attach

// opTable assigns ids to a client's operations. The lower half of an id is the number of a slot in the table; the upper
// half counts the operations that have used the slot, so that ids are not reused soon.
type opTable struct {
	slots        []slot
	free         []uint32
	removedCount uint64 // number of operations that have been removed
}

// slot holds an operation, or nil if it is free. generation is the upper half of the operation's id.
type slot struct {
	op         *Op
	generation uint32
}

func (t *opTable) len() int { return len(t.slots) - len(t.free) }

// add adds an operation and returns its id, which is never 0.
func (t *opTable) add(op *Op) uint64 {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.op = op
	s.generation++
	return uint64(s.generation)<<32 | uint64(i)
}

// get returns the operation with the given id, or nil.
func (t *opTable) get(id uint64) *Op {
	i := uint32(id)
	if uint64(i) >= uint64(len(t.slots)) || t.slots[i].generation != uint32(id>>32) {
		return nil
	}
	return t.slots[i].op
}

// remove removes the operation with the given id, which must be in the table.
func (t *opTable) remove(id uint64) {
	i := uint32(id)
	t.slots[i].op = nil
	t.free = append(t.free, i)
	t.removedCount++
}

// removeAll removes and returns all operations.
func (t *opTable) removeAll() (ops []*Op) {
	for _, s := range t.slots {
		if s.op != nil {
			ops = append(ops, s.op)
		}
	}
	*t = opTable{}
	return ops
}
