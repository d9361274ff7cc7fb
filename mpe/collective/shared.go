package collective

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Ranks of one host have shared buffers: each writes to its own, and reads those of the others. A shared
// buffer has slots, one for each communicator; which one is part of what the members agree
// on. A slot has a sequence number, which its owner advances as it publishes what it has written, and
// memory in two halves. A communicator's calls by shared buffers are carried out one after another, in the order in
// which they are made, and use one half and the other in turn. A rank writes to its half when all members have
// ended the call before the last one: so no rank reads there any longer.

// SharedBuffers are those of the ranks of a host. The methods are called in events, but for what
// they do to each other's memory they may be called by several ranks at once.
type SharedBuffers interface {
	// Slots returns how many slots each buffer has, up to 64, and the bytes of half a slot.
	Slots() (slots, half int)
	// Clear sets the sequence of this rank's slots, of which there is a bit in the mask, and the epoch of none.
	Clear(mask, sequence uint64)
	// Use sets the epoch of this rank's slot: which communicator's it is.
	Use(slot int, epoch uint64)
	// Publish sets the sequence of this rank's slot, after all that was written to it, and wakes
	// those of the members, ranks of the world, that sleep.
	Publish(slot int, sequence uint64, members []int)
	// Fail notes that this rank has failed the call of that number. It is to be published.
	Fail(slot int, call uint64)
	// Describe sets the digest and the description of what this rank calls in the call of that number, before it
	// publishes anything in it or fails it.
	Describe(slot int, call, digest, description uint64)
	// State returns the state of a rank's slot for a call: all 0 if there is no such buffer yet. When there is one, that rank has
	// this one's, too. What a process has published is there when it has ended, until another process is the rank.
	State(rank, slot int, call uint64) SlotState
	// Described returns what Describe set last in the half of a call, for errors.
	Described(rank, slot int, call uint64) (digest, description uint64)
	// View returns the memory of a rank's slot and the epoch, or nil if there is no such buffer yet. It stays until
	// Release, which is to be called in any case.
	View(rank, slot int) (memory []byte, epoch uint64)
	Release(rank int)
	// Await has Executor.Published called, in an event, when the sequence of a rank's slot has come to a
	// number or beyond. There is one wait for a slot: the last one counts. It may be called without reason, too.
	Await(rank, slot int, sequence uint64)
}

// SlotState is the state of a slot, for a call. Failed and Digest are those of the last call of the same half.
type SlotState struct {
	Sequence uint64
	// Epoch is that of the communicator which uses the slot.
	Epoch uint64
	// Failed is the number of the last call that the rank has failed, and BeforeFailed that in the other half.
	Failed, BeforeFailed uint64
	// Digest identifies what the rank called last: other ranks made the same call if theirs is equal. BeforeDigest is
	// the digest in the other half, of the call before or another one.
	Digest, BeforeDigest uint64
}

// sharing is how the members of a communicator use their shared buffers.
type sharing struct {
	buffers SharedBuffers
	slot    int
	half    int
	members []int
	self    int
	// epoch is the communicator's: slots with another one are of another process, or of another
	// communicator that uses the slot now.
	epoch uint64
	// freed: no further call is made.
	freed bool
	// posted counts the calls that were made here, of which the last one has the number lastTag.
	posted  uint64
	lastTag int
	// seen has the sequence of each member when it was looked at last, and this rank's own.
	seen []uint64
	// made has what this rank has called last, by half.
	made [2]made
	// queue has the calls that have not ended, in their order. The first one has begun, or is about to.
	queue []queued
	// lost has why members are not there any more.
	lost map[int]error
}

// made is what a rank has called.
type made struct {
	digest      uint64
	description callWord
}

// queued is a call in the order of those by shared buffers. call is nil if it has failed here.
type queued struct {
	number uint64
	made
	call *Execution
}

// The sequence of a slot has the number of the call that its owner has come to, and how many
// publications it has made in that, up to two for each of coll.MostChunks. The call before has ended.
const countBits = 24

func sequence(call, publications uint64) uint64 { return call<<countBits | publications }

// sequenceAfter is that of a rank that has ended a call.
func sequenceAfter(call uint64) uint64 { return sequence(call+1, 0) }

// await is what a call by shared buffers waits for.
type await struct {
	// rank is the member, −1 if there is none.
	rank  int
	since handshake.Instant
}

// share is what a call by shared buffers has of it.
type share struct {
	*sharing
	number uint64
	// digest is that of the call.
	digest uint64
	// step is the one at hand, nil if there is none.
	step *coll.Step
	// steps counts those that were begun, and published its publications.
	steps     int
	published uint64
	// claimed: no rank reads this half of the buffer, or what the call of this half was, any longer.
	claimed bool
	await   await
}

// freeSlots returns those that no communicator has, if all members of a call's share memory. Members of one
// communicator at a time agree on a slot: one that agrees meanwhile gets none.
func (e *Executor) freeSlots(x *Execution) (mask uint64) {
	b := e.engine.Shared()
	if b == nil || e.offered != nil {
		return 0
	}
	for i, rank := range x.Members {
		if w, _ := e.engine.Wire(rank); i != x.Call.Rank && !w.Shared {
			return 0
		}
	}
	for _, s := range e.slots {
		if s != nil && s.over() {
			e.release(s)
		}
	}
	slots, _ := b.Slots()
	mask = (^uint64(0) >> (64 - min(slots, 64))) &^ e.slotsInUse
	b.Clear(mask, sequenceAfter(0))
	return mask
}

// takeSlot has a communicator use a slot of those that all members have free.
func (e *Executor) takeSlot(a *agreement, mask uint64) {
	if mask == 0 || a.epoch == 0 {
		return
	}
	slot := bits.TrailingZeros64(mask)
	e.slotsInUse |= 1 << slot
	b := e.engine.Shared()
	_, half := b.Slots()
	s := &sharing{buffers: b, slot: slot, half: half, members: a.members, self: slices.Index(a.members, e.engine.Rank()), epoch: a.epoch + uint64(a.comm), seen: make([]uint64, len(a.members))}
	s.seen[s.self] = sequenceAfter(0)
	a.sharing, e.slots[slot] = s, s
	b.Use(slot, s.epoch)
}

// leaveSlot ends that.
func (e *Executor) leaveSlot(a *agreement) {
	if e.offered == a {
		e.offered = nil
	}
	if a.sharing != nil {
		e.release(a.sharing)
	}
}

// release gives a slot back.
func (e *Executor) release(s *sharing) {
	e.slotsInUse &^= 1 << s.slot
	e.slots[s.slot] = nil
}

// free notes that no further call is made. The slot can be used again when all members have ended the last one.
func (s *sharing) free() {
	s.freed = true
	if end := sequenceAfter(s.posted); len(s.queue) == 0 && s.seen[s.self] < end {
		s.publish(end)
	}
}

// over reports whether no further call is made, and no member has one under way that reads this rank's slot. A
// member whose slot has another epoch uses it for something else: so it has seen that as well.
func (s *sharing) over() bool {
	if !s.freed || len(s.queue) > 0 {
		return false
	}
	for i, rank := range s.members {
		if i == s.self {
			continue
		}
		if state := s.buffers.State(rank, s.slot, s.posted); state.Epoch == s.epoch && state.Sequence < sequenceAfter(s.posted) {
			return false
		}
	}
	return true
}

// publish publishes a sequence.
func (s *sharing) publish(sequence uint64) {
	s.seen[s.self] = sequence
	s.buffers.Publish(s.slot, sequence, s.members)
}

// enqueue has the call carried out when those before it have ended.
func (x *Execution) enqueue(s *sharing) {
	s.posted++
	s.lastTag = x.Tag
	x.share = &x.ownShare
	*x.share = share{sharing: s, number: s.posted, digest: x.digest(), await: await{rank: -1}}
	s.queue = append(s.queue, queued{s.posted, made{x.share.digest, newCallWord(&x.Call, x.Op)}, x})
	if len(s.queue) == 1 {
		x.carryOut()
	}
}

// skip counts a call that a member has refused, on all members: those that have not made it by shared buffers count it as failed. It cannot where a
// later call was counted already; that one has another digest there.
func (a *agreement) skip(f *abortMsg) {
	s := a.sharing
	if s == nil || !f.cause.refused() || s.lastTag != 0 && !ahead(f.number, s.lastTag) {
		return
	}
	s.posted++
	s.lastTag = f.number
	s.queue = append(s.queue, queued{number: s.posted, made: made{digest: refusedDigest(f.number)}})
	if len(s.queue) == 1 {
		s.beginNext()
	}
}

// refusedDigest is that of a call that was refused: the lower half is 0, as of no other.
func refusedDigest(tag int) uint64 { return uint64(tag) << 32 }

// isRefused reports whether a digest is that of the call that another one is of, where it was refused.
func isRefused(digest, of uint64) bool { return uint32(digest) == 0 && digest>>32 == of>>32 }

// endShared ends a call by shared buffers. One that has failed stays in the queue until beginNext has notified the others.
func (x *Execution) endShared(failed bool) {
	s := x.share
	if !failed {
		if s.published == 0 || s.freed { // else the first publication of the next call says so soon enough
			s.publish(sequenceAfter(s.number))
		}
		s.queue = append(s.queue[:0], s.queue[1:]...)
		return
	}
	for i := range s.queue {
		if s.queue[i].call == x {
			s.queue[i].call = nil
		}
	}
}

// beginNext carries out the next calls, and ends those that have failed here: the members that are still in
// them have to see that, so they have to be begun as all are.
func (s *sharing) beginNext() {
	for len(s.queue) > 0 {
		t := s.queue[0]
		if t.call != nil {
			if !t.call.begun {
				t.call.carryOut()
			}
			return
		}
		if rank := s.behind(t.number); rank >= 0 {
			s.buffers.Await(s.members[rank], s.slot, sequenceAfter(t.number-2))
			return
		}
		s.describe(&t)
		s.buffers.Fail(s.slot, t.number)
		s.made[t.number&1] = made{} // what has failed here is known
		s.publish(sequenceAfter(t.number))
		s.queue = append(s.queue[:0], s.queue[1:]...)
	}
}

// describe shows the members what this rank calls.
func (s *sharing) describe(t *queued) {
	s.made[t.number&1] = t.made
	s.buffers.Describe(s.slot, t.number, t.digest, uint64(t.description))
}

// errFailed: a member has failed the call.
var errFailed = errors.New("the rank has failed the call")

// errMismatchBefore: a member has made another call before this one. Neither has noticed it, as neither has awaited the
// other.
var errMismatchBefore = fmt.Errorf("%w before", ErrMismatch)

// look returns up to where a member has come, at most to the end of the call of that number, and what is wrong with what it has
// published in that call: errFailed, ErrMismatch if it has another digest, or errMismatchBefore.
func (s *sharing) look(member int, number, digest uint64) (at uint64, problem error) {
	state := s.buffers.State(s.members[member], s.slot, number)
	if state.Epoch != s.epoch { // it is of another process
		return 0, nil
	}
	at = min(state.Sequence, sequenceAfter(number))
	switch {
	case at <= sequence(number, 0):
	case state.Digest != digest && (state.Failed != number || !isRefused(state.Digest, digest)):
		return at, ErrMismatch
	case state.Failed == number:
		return at, errFailed
	case state.BeforeFailed != number-1 && s.made[(number-1)&1].differs(state.BeforeDigest):
		return at, errMismatchBefore
	}
	s.seen[member] = at
	return at, nil
}

// differs reports whether a digest is of the same call in the order of calls, but of another one.
func (m *made) differs(digest uint64) bool {
	return digest != m.digest && digest>>32 == m.digest>>32 && uint32(digest) != 0 && uint32(m.digest) != 0
}

// mismatch describes a mismatch with a rank in the call that is carried out, or the one before.
func (s *sharing) mismatch(rank int, problem error) error {
	number, ours := s.queue[0].number, s.queue[0].made
	if errors.Is(problem, errMismatchBefore) {
		number--
		ours = s.made[number&1]
	}
	digest, description := s.buffers.Described(rank, s.slot, number)
	theirs := callWord(description)
	text := "has called %[2]v, and this rank %[3]v"
	switch {
	case digest>>32 != ours.digest>>32 || theirs == 0: // it has published nothing in the call
		text = "has made another call, and this rank %[3]v"
	case theirs == ours.description:
		text = "has called %[2]v, too, with another datatype, layout or algorithm"
	}
	return fmt.Errorf("rank %[1]d "+text+": %[4]w", rank, theirs, ours.description, problem)
}

// digest is the same for all ranks that have made the same call.
func (x *Execution) digest() uint64 {
	c := &x.Call
	var h uint64
	for _, b := range []byte(x.Algorithm) {
		h = h*31 + uint64(b)
	}
	for _, n := range [...]int{int(c.Collective), c.Root, c.Bytes, c.Elem, c.Segment, int(x.Op), int(x.Type)} {
		h = bits.RotateLeft64(h*0x9e3779b97f4a7c15+uint64(n), 29)
	}
	return refusedDigest(x.Tag) | fold(h) | 1
}

// behind returns a member that has not ended the call before the one before number and is not lost, or −1.
func (s *sharing) behind(number uint64) int {
	if number <= 2 {
		return -1
	}
	until := sequenceAfter(number - 2)
	for i := range s.members {
		if i == s.self || s.seen[i] >= until || s.lost[s.members[i]] != nil {
			continue
		}
		if at, _ := s.look(i, number, 0); at < until {
			return i
		}
	}
	return -1
}

// Published notes that what was awaited in a slot was published.
func (e *Executor) Published(slot int) {
	s := e.slots[slot]
	switch {
	case s == nil || len(s.queue) == 0:
	case s.queue[0].call == nil:
		e.toBegin = append(e.toBegin, s)
	default:
		s.queue[0].call.wake()
	}
}

// PeerLost notes that a rank is not there any more, or has started anew. What it has published before can be read; calls
// that need more of it fail.
func (e *Executor) PeerLost(rank int, err error) {
	for _, s := range e.slots {
		if s == nil || !slices.Contains(s.members, rank) {
			continue
		}
		if s.lost == nil {
			s.lost = map[int]error{}
		}
		s.lost[rank] = err
		e.Published(s.slot)
	}
}

// advanceShared does the steps that it can, one after another, and ends the call after the last one.
func (x *Execution) advanceShared() {
	s := x.share
	for {
		if s.step == nil {
			step, ok := x.schedule.Next()
			if !ok {
				x.end(nil)
				return
			}
			s.step = step
			s.steps++
		}
		step := s.step
		if !s.claimed && (step.Kind == coll.StepPublish || step.Into.Buf == coll.Shared) {
			// Before the third call nobody has read there, and a member may not have taken its slot yet.
			if s.number <= 2 && x.waitsForBuffers() || s.number > 2 && x.waitsFor(coll.Everyone, sequenceAfter(s.number-2)) {
				return
			}
			s.claimed = true
		}
		switch step.Kind {
		case coll.StepAwait:
			if x.waitsFor(step.Peer, sequence(s.number, uint64(step.Count))) {
				return
			}
		case coll.StepPublish:
			if s.published++; s.published == 1 {
				s.describe(&s.queue[0])
			}
			s.publish(sequence(s.number, s.published))
		default:
			if err := x.moveShared(step); err != nil {
				x.failShared(-1, err)
				return
			}
		}
		s.step = nil
	}
}

// waitsForBuffers reports whether the call has to wait until this rank has the buffers of all members that are not lost. They
// have this rank's then, and so what it publishes can be read when its process has ended. The exchange that took the slot
// is no proof of that: it may have gone by way of other members.
func (x *Execution) waitsForBuffers() bool {
	s := x.share
	for i, rank := range s.members {
		if i == s.self || s.lost[rank] != nil || s.buffers.State(rank, s.slot, s.number).Sequence > 0 {
			continue // every member had set the sequence of its slot before one was taken
		}
		if s.await.rank != i {
			s.await = await{i, x.e.engine.Now()}
		}
		s.buffers.Await(rank, s.slot, 1)
		return true
	}
	s.await.rank = -1
	return false
}

// waitsFor reports whether the call has to wait until a member, or each other member, has come to a sequence number. A
// member that has failed the call will not come to a publication in it.
func (x *Execution) waitsFor(member int, until uint64) bool {
	s := x.share
	first, last := member, member
	if member == coll.Everyone {
		first, last = 0, len(s.members)-1
	}
	for i := max(first, s.await.rank); i <= last; i++ { // those before were there
		if i == s.self || s.seen[i] >= until {
			continue
		}
		rank := s.members[i]
		at, problem := s.look(i, s.number, s.digest)
		if at >= until && (problem == nil || until <= sequence(s.number, 0)) {
			continue
		}
		if s.await.rank != i {
			s.await = await{i, x.e.engine.Now()}
		}
		switch lost := s.lost[rank]; {
		case lost != nil:
			x.failShared(rank, lost)
		case at < until:
			s.buffers.Await(rank, s.slot, until)
		case !errors.Is(problem, errFailed):
			x.failShared(rank, s.mismatch(rank, problem))
		default: // its abort, or that of the rank that has failed first, is in transit
		}
		return true
	}
	s.await.rank = -1
	return false
}

// moveShared copies or combines. The error says that this cannot be.
func (x *Execution) moveShared(step *coll.Step) error {
	s := x.share
	reads, writes := step.Extents()
	into, err := x.view(step.Into, writes)
	if err != nil {
		return err
	}
	if step.From.Buf != coll.Shared || step.Peer == s.self {
		from, err := x.view(step.From, reads)
		if err == nil {
			x.move(step, into, from)
		}
		return err
	}
	rank := s.members[step.Peer]
	slot, of := s.buffers.View(rank, s.slot)
	defer s.buffers.Release(rank)
	if of != s.epoch {
		return fmt.Errorf("rank %d: %w", rank, errReplaced)
	}
	from, err := x.within(s.halfOf(slot), step.From, reads)
	if err == nil {
		x.move(step, into, from)
	}
	return err
}

// move copies or combines bytes. A user's operation is not for shared buffers.
func (x *Execution) move(step *coll.Step, into, from []byte) {
	if step.Kind == coll.StepPack {
		step.Pack(into, from)
		return
	}
	_ = x.combine(step.Kind, into, from)
}

// halfOf is the half of a slot that the call uses.
func (s *share) halfOf(slot []byte) []byte {
	at := int(s.number&1) * s.half
	return slot[at : at+s.half]
}

// errReplaced: another process has become the rank, which is about to be reported as lost.
var errReplaced = errors.New("its memory is that of another process")

// failShared ends the call because of the step at hand.
func (x *Execution) failShared(rank int, err error) {
	x.failed = x.sharedError(rank, err)
	x.end(x.failed)
}

// sharedError says which step has failed, and which rank it waits for, if it is not −1.
func (x *Execution) sharedError(rank int, err error) *StepError {
	e := &StepError{Collective: x.Call.Collective, Algorithm: x.algorithm.Name, Number: x.share.steps, Kind: coll.StepAwait, Peer: rank, Err: err}
	if s := x.share.step; s != nil {
		e.Kind, e.Bytes = s.Kind, s.Len
	}
	return e
}
