package collective

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
)

// Ranks on one host use shared buffers: each rank writes to its own buffer and reads the other ranks' buffers. A shared
// buffer is divided into slots, one per communicator; the members agree on the slot. A slot consists of a sequence
// number, which its owner advances to publish data, and of memory in two halves. The calls of a communicator on shared
// buffers are executed sequentially, in posting order, and alternate between the halves. A rank writes to a half only
// after all members are done with the last call that used the half, so that no rank is still reading it.

// SharedBuffers provides access to the buffers that the ranks on a host share. An Executor calls its methods within
// events. Several ranks may call them concurrently, and access each other's memory.
type SharedBuffers interface {
	// Slots returns the number of slots in each buffer, at most 64, and the size of half a slot in bytes.
	Slots() (slots, half int)
	// Clear sets the sequence of each slot of this rank whose bit is set in mask, and clears the slot's epoch.
	Clear(mask, sequence uint64)
	// Use sets the epoch of this rank's slot, which identifies the communicator.
	Use(slot int, epoch uint64)
	// Publish sets the sequence of this rank's slot, and wakes sleeping members. A member that sees the sequence also
	// sees all earlier writes to the slot. members holds world ranks.
	Publish(slot int, sequence uint64, members []int)
	// Fail records that a call failed on this rank. The caller must call Publish afterwards.
	Fail(slot int, call uint64)
	// Describe sets the digest and the description of this rank's call with the given number. It must be called before
	// the call's first Publish or Fail.
	Describe(slot int, call, digest, description uint64)
	// State returns the state of a rank's slot for a call, or the zero SlotState if that rank's buffer does not exist
	// yet. A rank whose buffer exists has also mapped this rank's buffer. Published data outlives its process, until
	// another process becomes the rank.
	State(rank, slot int, call uint64) SlotState
	// Described returns the values that a rank last passed to Describe for the half used by a call. It serves to
	// describe mismatches in errors.
	Described(rank, slot int, call uint64) (digest, description uint64)
	// View returns the memory of a rank's slot and its epoch, or nil if the rank's buffer does not exist yet. The
	// memory is valid until Release, which the caller must call in either case.
	View(rank, slot int) (memory []byte, epoch uint64)
	Release(rank int)
	// Await requests a call of Executor.SlotPublished, in an event, when the sequence of a rank's slot reaches the
	// given value. Each slot supports a single wait: a new Await replaces the last one. Spurious calls of SlotPublished
	// are allowed.
	Await(rank, slot int, sequence uint64)
}

// SlotState is the state of a slot as seen by a call. Failed and Digest are from the half that the call uses,
// BeforeFailed and BeforeDigest from the other half.
type SlotState struct {
	Sequence uint64
	// Epoch identifies the communicator that owns the slot.
	Epoch uint64
	// Failed and BeforeFailed are the numbers of the last calls in each half that failed on the rank.
	Failed, BeforeFailed uint64
	// Digest and BeforeDigest identify the rank's last call in each half: ranks that made the same call have equal
	// digests. BeforeDigest is from the previous call or an older one.
	Digest, BeforeDigest uint64
}

// sharing is the state of a communicator whose members use shared buffers.
type sharing struct {
	buffers SharedBuffers
	slot    int
	// half is the size of half a slot in bytes. self is the index of this rank in members.
	half    int
	members []int
	self    int
	// epoch is the communicator's epoch. A member's slot with another epoch belongs to another process, or to another
	// communicator that has reused the slot.
	epoch uint64
	// freed means that the program will make no further call in the communicator.
	freed bool
	// posted counts the calls on shared buffers that this rank has made. lastTag is the tag of the last one.
	posted  uint64
	lastTag int
	// last describes the last call of this rank.
	last lastCall
	// lastSeen holds, for each other member, the sequence last seen in that member's slot, and for this rank its own
	// sequence.
	lastSeen []uint64
	// lastCalls holds, for each half, this rank's last call that used it.
	lastCalls [2]callID
	// queue lists the pending calls in posting order. The first has begun, or is about to begin.
	queue []queuedCall
	// lost holds an error for each lost member, keyed by world rank.
	lost map[int]error
}

// callID identifies a rank's call, so that it can be compared with the calls of other ranks.
type callID struct {
	digest      uint64
	description callWord
}

// queuedCall is an entry in the queue of calls on shared buffers. The field call is nil if the call failed on this
// rank.
type queuedCall struct {
	number uint64
	callID
	call *Execution
}

// countBits is the width of the lower part of a slot's sequence: the number of the owner's publications in its current
// call, at most two for each of coll.MaxChunks. The upper part is the number of the current call; the owner is done
// with all earlier calls.
const countBits = lease.CountBits

func sequence(call, publications uint64) uint64 { return call<<countBits | publications }

// sequenceAfter returns the sequence that a rank's slot has once the rank is done with a call.
func sequenceAfter(call uint64) uint64 { return sequence(call+1, 0) }

// awaitState describes the member for which a call on shared buffers waits.
type awaitState struct {
	// rank is the index of that member, or −1 if the call waits for no member.
	rank  int
	since handshake.Instant
}

// share is the state of a call on shared buffers.
type share struct {
	*sharing
	number uint64
	// digest is the call's digest.
	digest uint64
	// step is the current step, or nil.
	step *coll.Step
	// steps counts the steps that the call has begun, and published counts its publications.
	steps     int
	published uint64
	// claimed means that no rank still reads this half of the buffer, or the description of the call that used this
	// half before.
	claimed bool
	await   awaitState
}

// freeSlots returns a mask of the slots that no communicator uses, or 0 if not all members of a call share memory. Only
// one agreement at a time may offer slots. Any concurrent agreement gets the mask 0, so that its communicator uses no
// slot.
func (e *Executor) freeSlots(exec *Execution) (mask uint64) {
	buffers := e.engine.Shared()
	if buffers == nil || e.slotOffer != nil {
		return 0
	}
	for i, rank := range exec.Members {
		if w, _ := e.engine.Wire(rank); i != exec.Call.Rank && !w.Shared {
			return 0
		}
	}
	for _, s := range e.slots {
		if s != nil && s.canRelease() {
			e.release(s)
		}
	}
	slots, _ := buffers.Slots()
	mask = (^uint64(0) >> (64 - min(slots, 64))) &^ e.slotsInUse
	buffers.Clear(mask, sequenceAfter(0))
	return mask
}

// assignSlot assigns the communicator one of the slots that are free on all members.
func (e *Executor) assignSlot(a *agreement, mask uint64) {
	if mask == 0 || a.epoch == 0 {
		return
	}
	slot := bits.TrailingZeros64(mask)
	e.slotsInUse |= 1 << slot
	buffers := e.engine.Shared()
	_, half := buffers.Slots()
	s := &sharing{buffers: buffers, slot: slot, half: half, members: a.members,
		self: slices.Index(a.members, e.engine.Rank()), epoch: a.epoch + uint64(a.comm),
		lastSeen: make([]uint64, len(a.members))}
	s.lastSeen[s.self] = sequenceAfter(0)
	a.sharing, e.slots[slot] = s, s
	buffers.Use(slot, s.epoch)
}

// releaseSlot withdraws the agreement's offer of slots, and releases its slot.
func (e *Executor) releaseSlot(a *agreement) {
	if e.slotOffer == a {
		e.slotOffer = nil
	}
	if a.sharing != nil {
		e.release(a.sharing)
	}
}

// release releases a slot.
func (e *Executor) release(s *sharing) {
	e.slotsInUse &^= 1 << s.slot
	e.slots[s.slot] = nil
}

// markFreed records that the program will make no further call in the communicator. The slot can be reused when all
// members are done with the last call.
func (s *sharing) markFreed() {
	s.freed = true
	if end := sequenceAfter(s.posted); len(s.queue) == 0 && s.lastSeen[s.self] < end {
		s.publish(end)
	}
}

// canRelease reports whether the slot can be reused: the program will make no further call, and no member is still
// reading this rank's slot. A member whose slot has another epoch already uses the slot for another communicator, so it
// must be done with the last call, too.
func (s *sharing) canRelease() bool {
	if !s.freed || len(s.queue) > 0 {
		return false
	}
	for i, rank := range s.members {
		if i == s.self {
			continue
		}
		if state := s.buffers.State(rank, s.slot, s.posted); state.Epoch == s.epoch &&
			state.Sequence < sequenceAfter(s.posted) {
			return false
		}
	}
	return true
}

func (s *sharing) publish(sequence uint64) {
	s.lastSeen[s.self] = sequence
	s.buffers.Publish(s.slot, sequence, s.members)
}

// enqueue queues a call, and begins it if no earlier call is pending.
func (x *Execution) enqueue(s *sharing) {
	s.posted++
	s.lastTag = x.Tag
	x.sharedCall = &x.ownShare
	*x.sharedCall = share{sharing: s, number: s.posted, digest: x.digest(), await: awaitState{rank: -1}}
	id := callID{x.sharedCall.digest, newCallWord(&x.Call, x.Op)}
	s.last = lastCall{callID: id, collective: x.Call.Collective, inPlace: x.Call.InPlace, op: x.Op, elem: x.Type,
		bytes: x.Call.Bytes, segment: x.Call.Segment, root: x.Call.Root, algorithm: x.algorithm}
	s.queue = append(s.queue, queuedCall{s.posted, id, x})
	if len(s.queue) == 1 {
		x.run()
	}
}

// countRejected counts a call that a member rejected. All members must count the call, so that their call numbers
// remain equal: a member that has not made the call on shared buffers counts it as failed. If a later call has already
// been counted, countRejected is a no-op, and the members detect the mismatch by its digest.
func (a *agreement) countRejected(msg *abortMsg) {
	s := a.sharing
	if s == nil || !msg.cause.refused() || s.lastTag != 0 && !isAhead(msg.number, s.lastTag) {
		return
	}
	s.posted++
	s.lastTag = msg.number
	s.queue = append(s.queue, queuedCall{number: s.posted, callID: callID{digest: refusedDigest(msg.number)}})
	if len(s.queue) == 1 {
		s.beginNext()
	}
}

// refusedDigest returns the digest of a rejected call. Its lower half is 0, which distinguishes it from every other
// digest.
func refusedDigest(tag int) uint64 { return uint64(tag) << 32 }

// isRefused reports whether digest belongs to a rejected call. The tag of this call must equal that of the call whose
// digest is given as of.
func isRefused(digest, of uint64) bool { return uint32(digest) == 0 && digest>>32 == of>>32 }

// endShared ends a call on shared buffers. A failed call remains in the queue until beginNext has notified the other
// members.
func (x *Execution) endShared(failed bool) {
	s := x.sharedCall
	if !failed {
		if s.published == 0 || s.freed { // otherwise the first publication of the next call informs the members
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

// beginNext publishes the failure of calls at the head of the queue that failed on this rank, and then begins the next
// call. It processes failed calls in order, because members may still be executing them and must see the failure.
func (s *sharing) beginNext() {
	for len(s.queue) > 0 {
		call := s.queue[0]
		if call.call != nil {
			if !call.call.started {
				call.call.run()
			}
			return
		}
		if rank := s.laggingMember(call.number); rank >= 0 {
			s.buffers.Await(s.members[rank], s.slot, sequenceAfter(call.number-2))
			return
		}
		s.describe(&call)
		s.buffers.Fail(s.slot, call.number)
		s.lastCalls[call.number&1] = callID{} // the members know of the failure, so do not report a mismatch
		s.publish(sequenceAfter(call.number))
		s.queue = append(s.queue[:0], s.queue[1:]...)
	}
}

// describe stores the digest and the description of this rank's call in the slot of this rank.
func (s *sharing) describe(t *queuedCall) {
	s.lastCalls[t.number&1] = t.callID
	s.buffers.Describe(s.slot, t.number, t.digest, uint64(t.description))
}

// errFailed is returned when the call failed on another member.
var errFailed = errors.New("the rank failed in the call")

// errMismatchBefore is returned when a member's previous call differed from this rank's. Neither rank noticed that
// during the previous call, because neither waited for the other.
var errMismatchBefore = fmt.Errorf("%w before", ErrMismatch)

// checkMember returns the sequence of a member, clamped to the end of the call with the given number. problem is
// errFailed if the call failed on the member, ErrMismatch if the member's digest differs, errMismatchBefore, or nil.
func (s *sharing) checkMember(member int, number, digest uint64) (at uint64, problem error) {
	state := s.buffers.State(s.members[member], s.slot, number)
	if state.Epoch != s.epoch { // the slot belongs to another process
		return 0, nil
	}
	at = min(state.Sequence, sequenceAfter(number))
	switch {
	case at <= sequence(number, 0):
	case state.Digest != digest && (state.Failed != number || !isRefused(state.Digest, digest)):
		return at, ErrMismatch
	case state.Failed == number:
		return at, errFailed
	case state.BeforeFailed != number-1 && s.lastCalls[(number-1)&1].differs(state.BeforeDigest):
		return at, errMismatchBefore
	}
	s.lastSeen[member] = at
	return at, nil
}

// differs reports whether a digest belongs to a different call that nevertheless has the same tag.
func (m *callID) differs(digest uint64) bool {
	return digest != m.digest && digest>>32 == m.digest>>32 && uint32(digest) != 0 && uint32(m.digest) != 0
}

// mismatch returns the error for a call that differs from another rank's, in either the current call or the previous
// one.
func (s *sharing) mismatch(rank int, problem error) error {
	number, ours := s.queue[0].number, s.queue[0].callID
	if errors.Is(problem, errMismatchBefore) {
		number--
		ours = s.lastCalls[number&1]
	}
	digest, description := s.buffers.Described(rank, s.slot, number)
	theirs := callWord(description)
	text := "has called %[2]v, but this rank called %[3]v"
	switch {
	case digest>>32 != ours.digest>>32 || theirs == 0: // the rank has published nothing in the call
		text = "has made another call, but this rank called %[3]v"
	case theirs == ours.description:
		text = "has also called %[2]v, but with another datatype, layout or algorithm"
	}
	return fmt.Errorf("rank %[1]d "+text+": %[4]w", rank, theirs, ours.description, problem)
}

// digest returns a hash of the call that is equal on all ranks that made the same call.
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

// laggingMember returns the index of a member that is neither lost nor done with call number−2, or −1.
func (s *sharing) laggingMember(number uint64) int {
	if number <= 2 {
		return -1
	}
	until := sequenceAfter(number - 2)
	for i := range s.members {
		if i == s.self || s.lastSeen[i] >= until || s.lost[s.members[i]] != nil {
			continue
		}
		if at, _ := s.checkMember(i, number, 0); at < until {
			return i
		}
	}
	return -1
}

// SlotPublished continues a slot's current call when a member's slot has reached the awaited sequence.
func (e *Executor) SlotPublished(slot int) {
	s := e.slots[slot]
	switch {
	case s == nil || len(s.queue) == 0:
	case s.queue[0].call == nil:
		e.toBegin = append(e.toBegin, s)
	default:
		s.queue[0].call.wake()
	}
}

// OnPeerLost records that a rank was lost or restarted. Calls can still read data that the rank published earlier, but
// fail if they need more.
func (e *Executor) OnPeerLost(rank int, err error) {
	for _, s := range e.slots {
		if s == nil || !slices.Contains(s.members, rank) {
			continue
		}
		if s.lost == nil {
			s.lost = map[int]error{}
		}
		s.lost[rank] = err
		e.SlotPublished(s.slot)
	}
}

// advanceShared executes steps until a step has to wait, and ends the call after the last step.
func (x *Execution) advanceShared() {
	s := x.sharedCall
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
			// Before the third call, no rank has read this half yet, but the buffer of a member may not exist yet.
			if s.number <= 2 && x.mustAwaitBuffers() ||
				s.number > 2 && x.mustAwait(coll.AllRanks, sequenceAfter(s.number-2)) {
				return
			}
			s.claimed = true
		}
		switch step.Kind {
		case coll.StepAwait:
			if x.mustAwait(step.Peer, sequence(s.number, uint64(step.Count))) {
				return
			}
		case coll.StepPublish:
			if s.published++; s.published == 1 {
				s.describe(&s.queue[0])
			}
			s.publish(sequence(s.number, s.published))
		default:
			if err := x.copyShared(step); err != nil {
				x.failShared(-1, err)
				return
			}
		}
		s.step = nil
	}
}

// mustAwaitBuffers reports whether the call must wait until this rank can access the buffers of all members, except
// lost ones. These members can then access this rank's buffer as well, and read its publications even after its process
// ended. The agreement on the slot does not guarantee this, because it may have been reached through other members.
func (x *Execution) mustAwaitBuffers() bool {
	s := x.sharedCall
	for i, rank := range s.members {
		if i == s.self || s.lost[rank] != nil || s.buffers.State(rank, s.slot, s.number).Sequence > 0 {
			continue // a member sets the sequence of its slot before the agreement
		}
		if s.await.rank != i {
			s.await = awaitState{i, x.executor.engine.Now()}
		}
		s.buffers.Await(rank, s.slot, 1)
		return true
	}
	s.await.rank = -1
	return false
}

// mustAwait reports whether the call must wait until a member, or every other member, has reached a sequence. It ends
// the call if a member is lost or made a different call. A member on which the call failed publishes nothing more in
// it.
func (x *Execution) mustAwait(member int, until uint64) bool {
	s := x.sharedCall
	first, last := member, member
	if member == coll.AllRanks {
		first, last = 0, len(s.members)-1
	}
	for i := max(first, s.await.rank); i <= last; i++ { // earlier members have already reached until
		if i == s.self || s.lastSeen[i] >= until {
			continue
		}
		rank := s.members[i]
		at, problem := s.checkMember(i, s.number, s.digest)
		if at >= until && (problem == nil || until <= sequence(s.number, 0)) {
			continue
		}
		if s.await.rank != i {
			s.await = awaitState{i, x.executor.engine.Now()}
		}
		switch lost := s.lost[rank]; {
		case lost != nil:
			x.failShared(rank, lost)
		case at < until:
			s.buffers.Await(rank, s.slot, until)
		case !errors.Is(problem, errFailed):
			x.failShared(rank, s.mismatch(rank, problem))
		default: // an abort is in transit, from the member or from the rank that failed first
		}
		return true
	}
	s.await.rank = -1
	return false
}

// copyShared copies or combines the bytes of a step. It returns an error if it cannot access them.
func (x *Execution) copyShared(step *coll.Step) error {
	s := x.sharedCall
	var theirs []byte
	if (step.From.Buf == coll.Shared || step.With.Buf == coll.Shared) && step.Peer != s.self {
		rank := s.members[step.Peer]
		slot, of := s.buffers.View(rank, s.slot)
		defer s.buffers.Release(rank)
		if of != s.epoch {
			return fmt.Errorf("rank %d: %w", rank, errReplaced)
		}
		theirs = s.halfOf(slot)
	}
	reads, writes := step.Extents()
	into, err := x.bytesAt(step.Into, writes)
	if err != nil {
		return err
	}
	from, err := x.operand(step.From, reads, theirs)
	if err != nil {
		return err
	}
	switch step.Kind {
	case coll.StepPack:
		step.Pack(into, from)
	case coll.StepCopy:
		copy(into, from)
	default:
		with := into
		if step.With.Buf != 0 {
			if with, err = x.operand(step.With, reads, theirs); err != nil {
				return err
			}
		}
		x.reduce(into, from, with) // calls with a user function never use shared buffers
	}
	return nil
}

// operand returns n bytes that a step reads. theirs is the other rank's shared buffer that the step reads, or nil.
func (x *Execution) operand(at coll.Loc, n int, theirs []byte) ([]byte, error) {
	if at.Buf == coll.Shared && theirs != nil {
		return x.subslice(theirs, at, n)
	}
	return x.bytesAt(at, n)
}

// halfOf returns the half of a slot that the call uses.
func (s *share) halfOf(slot []byte) []byte {
	at := int(s.number&1) * s.half
	return slot[at : at+s.half]
}

// errReplaced is returned when another process has become the rank. The engine is about to report the rank as lost.
var errReplaced = errors.New("its memory belongs to another process")

// failShared ends the call because the current step has failed.
func (x *Execution) failShared(rank int, err error) {
	x.failErr = x.sharedError(rank, err)
	x.end(x.failErr)
}

// sharedError returns the error of the current step. The argument rank is the world rank for which the step waits, or
// −1.
func (x *Execution) sharedError(rank int, err error) *StepError {
	e := &StepError{Collective: x.Call.Collective, Algorithm: x.algorithm.Name, Number: x.sharedCall.steps,
		Kind: coll.StepAwait, Peer: rank, Err: err}
	if s := x.sharedCall.step; s != nil {
		e.Kind, e.Bytes = s.Kind, s.Len
	}
	return e
}
