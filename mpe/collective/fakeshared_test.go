package collective

// fakeBuffer is the shared buffer of a rank of a world.
type fakeBuffer struct {
	world  *world
	rank   int
	slots  []fakeSlot
	locked bool
	awaits map[int]fakeAwait
	// absent lists ranks whose buffers are not available yet.
	absent map[int]bool
}

type fakeSlot struct {
	sequence, epoch uint64
	failed, digest  [2]uint64
	description     [2]uint64
	memory          []byte
}

type fakeAwait struct {
	rank     int
	sequence uint64
}

// fakeHalf is the size of half a slot. It is so short that the vectors in tests exceed it.
const fakeHalf = 64

// share gives all ranks shared buffers with the given number of slots.
func (w *world) share(slots int) *world {
	for rank, f := range *w {
		f.shared = &fakeBuffer{world: w, rank: rank, slots: make([]fakeSlot, slots), awaits: map[int]fakeAwait{},
			absent: map[int]bool{}}
		for i := range f.shared.slots {
			f.shared.slots[i].memory = make([]byte, 2*fakeHalf)
		}
	}
	return w
}

func (b *fakeBuffer) of(rank int) *fakeBuffer { return (*b.world)[rank].shared }

func (b *fakeBuffer) Slots() (slots, half int) { return len(b.slots), fakeHalf }

func (b *fakeBuffer) Clear(mask, sequence uint64) {
	for i := range b.slots {
		if mask>>i&1 != 0 {
			b.slots[i].sequence, b.slots[i].epoch, b.slots[i].failed = sequence, 0, [2]uint64{}
		}
	}
}

func (b *fakeBuffer) Use(slot int, epoch uint64) { b.slots[slot].epoch = epoch }

func (b *fakeBuffer) Publish(slot int, sequence uint64, _ []int) {
	if sequence <= b.slots[slot].sequence {
		panic("the sequence of a slot goes back")
	}
	b.slots[slot].sequence = sequence
}

func (b *fakeBuffer) Fail(slot int, call uint64) { b.slots[slot].failed[call&1] = call }

func (b *fakeBuffer) Describe(slot int, call, digest, description uint64) {
	b.slots[slot].digest[call&1], b.slots[slot].description[call&1] = digest, description
}

func (b *fakeBuffer) State(rank, slot int, call uint64) SlotState {
	if b.absent[rank] {
		return SlotState{}
	}
	s := &b.of(rank).slots[slot]
	return SlotState{Sequence: s.sequence, Epoch: s.epoch, Failed: s.failed[call&1], BeforeFailed: s.failed[call&1^1],
		Digest: s.digest[call&1], BeforeDigest: s.digest[call&1^1]}
}

func (b *fakeBuffer) Described(rank, slot int, call uint64) (digest, description uint64) {
	s := &b.of(rank).slots[slot]
	return s.digest[call&1], s.description[call&1]
}

func (b *fakeBuffer) View(rank, slot int) ([]byte, uint64) {
	of := b.of(rank)
	if rank != b.rank {
		if of.locked {
			panic("a view that was not released")
		}
		of.locked = true
	}
	return of.slots[slot].memory, of.slots[slot].epoch
}

func (b *fakeBuffer) Release(rank int) { b.of(rank).locked = false }

func (b *fakeBuffer) Await(rank, slot int, sequence uint64) {
	b.awaits[slot] = fakeAwait{rank, sequence}
}

// report reports the awaits whose sequence has been reached.
func (b *fakeBuffer) report(calls *Executor) (any bool) {
	for slot, a := range b.awaits {
		if b.State(a.rank, slot, 0).Sequence >= a.sequence {
			delete(b.awaits, slot)
			calls.SlotPublished(slot)
			any = true
		}
	}
	return any
}
