package core

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A program may have millions of sends that wait for receives. A library that can refer to such a send by number hands
// over its Request to the engine (Keep), and takes it back (Wake) for each call of the program that concerns the send.
// The send then rests: until the peer answers, the engine stores a record of 56 bytes instead of the Request.

// RestingID identifies a send that was handed over to the engine. Zero identifies no send.
type RestingID uint64

// Origin identifies, for the library, the call that posted a send. Several sends may share an Origin.
type Origin struct {
	Comm any
	Call string
}

// restState is the state of a send that was handed over to the engine.
type restState uint8

const (
	// restFree means that the record is unused.
	restFree restState = iota
	// restWaits means that the engine stores only the record of the send.
	restWaits
	// restActive means that the engine holds a Request for the send: it has not been announced yet, or the peer has
	// answered.
	restActive
	// restTaken means that the library has taken the Request back.
	restTaken
	// restDone means that the send is complete. If it failed, its error is in the map errs.
	restDone
)

// restingSend is the engine's record of a send that was handed over to it. It is small, because there may be millions.
type restingSend struct {
	buf        *byte // while it waits
	posted     handshake.Instant
	origin     *Origin
	length     uint32
	comm       uint32
	number     uint32 // of the message
	id         uint32 // lower half of the Request's id
	generation uint32 // number of earlier sends in this record; makes RestingIDs unique
	tag        int32
	peer       int32 // in a free record, the ref of the next free one

	state     restState
	kind      OpKind
	datatype  protocol.Datatype
	discarded bool // the library has freed it
}

// restPage is the number of records allocated at a time.
const restPage = 1 << 10

// RestingSends holds the sends that libraries have handed over to the engine.
type RestingSends struct {
	core *Core

	pages     []*[restPage]restingSend
	allocated uint32 // records allocated so far
	free      uint32 // first free record, counted from 1, or 0
	// active holds the Requests of sends in state restActive, and errs the errors of sends in state restDone, by ref.
	active map[uint32]*Request
	errs   map[uint32]error
}

// record returns the record that a ref identifies. Refs are numbers counted from 1.
func (q *RestingSends) record(ref uint32) *restingSend {
	return &q.pages[(ref-1)/restPage][(ref-1)%restPage]
}

// add allocates a record, and returns its ref.
func (q *RestingSends) add() uint32 {
	if ref := q.free; ref != 0 {
		q.free = uint32(q.record(ref).peer)
		return ref
	}
	if q.allocated%restPage == 0 {
		q.pages = append(q.pages, new([restPage]restingSend))
	}
	q.allocated++
	return q.allocated
}

// remove frees a record.
func (q *RestingSends) remove(ref uint32) {
	s := q.record(ref)
	*s = restingSend{generation: s.generation + 1, peer: int32(q.free)}
	q.free = ref
	delete(q.active, ref)
	delete(q.errs, ref)
}

// ref returns the ref of the record that a RestingID identifies, or 0 if the send no longer exists.
func (q *RestingSends) ref(n RestingID) uint32 {
	ref := uint32(n)
	if ref == 0 || ref > q.allocated {
		return 0
	}
	if s := q.record(ref); s.state == restFree || s.discarded || s.generation != uint32(n>>32) {
		return 0
	}
	return ref
}

// activate assigns the Request r to a record, and puts the record into state restActive.
func (q *RestingSends) activate(ref uint32, r *Request) {
	if q.active == nil {
		q.active = map[uint32]*Request{}
	}
	q.record(ref).state, q.active[ref], r.restRef = restActive, r, ref
}

// mayRest reports whether a library may hand over a request that is about to start: a send to an extended peer to which
// many sends are already pending, because otherwise resting saves little.
func (q *RestingSends) mayRest(r *Request) bool {
	return r.p != nil && r.isSend() && r.p.extended != nil &&
		r.p.extended.conn.PendingSends() > q.core.matching.restThreshold
}

// Keep takes over a send from its library. The send may already be complete.
func (q *RestingSends) Keep(request *Request, origin *Origin) RestingID {
	ref := request.restRef
	if ref == 0 {
		ref = q.add()
	}
	s := q.record(ref)
	s.origin, s.comm, s.tag, s.peer, s.kind, s.datatype = origin, request.comm, request.tag, int32(request.peer),
		request.kind, request.datatype
	id := RestingID(s.generation)<<32 | RestingID(ref)
	q.activate(ref, request)
	if request.Done {
		q.onEnded(request)
	} else {
		request.p.extended.restSend(ref)
	}
	return id
}

// onEnded stores the outcome of a send that completes while the engine owns it.
func (q *RestingSends) onEnded(request *Request) {
	ref := request.restRef
	delete(q.active, ref)
	send := q.record(ref)
	send.state = restDone
	if request.Err != nil {
		if q.errs == nil {
			q.errs = map[uint32]error{}
		}
		q.errs[ref] = request.Err
	}
	q.core.effects.Release(request)
	if send.discarded {
		q.remove(ref)
	}
}

// restSend replaces a send's Request by its record, if the send has been announced and the peer has not matched it yet.
func (l *extendedLink) restSend(ref uint32) {
	sends := &l.p.e.RestingSends
	request := sends.active[ref]
	if request == nil || request.p != l.p {
		return
	}
	number, ok := l.conn.RestSend(request.sendID, ref)
	if !ok {
		return
	}
	l.invalidate(request.sendID) // the peer cannot copy the payload directly, and will request it
	l.outbox.remove(request.sendID)
	s := sends.record(ref)
	s.buf, s.length, s.posted, s.state = unsafe.SliceData(request.buf), uint32(len(request.buf)), request.posted, restWaits
	s.number, s.id = number, uint32(request.id)
	delete(sends.active, ref)
	l.resting++
	l.p.e.effects.Release(request)
}

// wakeSend is the callback for extended.Conn.SetWakeSend.
func (l *extendedLink) wakeSend(ref uint32) (extended.SendOp, handshake.Instant) {
	r := l.p.e.RestingSends.restore(ref)
	r.sendID = l.outbox.add(r)
	return extended.SendOp{
		ID: r.sendID, Length: int64(len(r.buf)), Comm: r.comm, Tag: uint32(r.tag), Datatype: r.datatype,
		Sync: r.kind == OpSendSync,
	}, r.posted
}

// restore returns a new Request for a resting send in state restWaits or restDone.
func (q *RestingSends) restore(ref uint32) *Request {
	send := q.record(ref)
	request := q.core.effects.NewRequest()
	request.kind, request.peer, request.p, request.tag, request.comm, request.datatype = send.kind, int(send.peer),
		q.core.peers.at(int(send.peer)), send.tag, send.comm, send.datatype
	request.posted, request.Status.Peer = send.posted, int(send.peer)
	if send.state == restWaits {
		request.id, request.buf = q.core.nextID-handshake.ID(uint32(q.core.nextID)-send.id), unsafe.Slice(send.buf,
			send.length)
		send.buf = nil
		request.p.extended.resting--
	} else {
		request.Err = q.errs[ref]
		request.Done = true
	}
	q.activate(ref, request)
	return request
}

// Wake returns the Request of a resting send to its library, or nil if there is no such send.
func (q *RestingSends) Wake(n RestingID) (*Request, *Origin) {
	ref := q.ref(n)
	if ref == 0 || q.record(ref).state == restTaken {
		return nil, nil
	}
	send := q.record(ref)
	switch send.state {
	case restWaits:
		q.core.peers.at(int(send.peer)).extended.touchedConn().WakeSend(send.number)
	case restDone:
		q.restore(ref)
	}
	r := q.active[ref]
	delete(q.active, ref)
	send.state = restTaken
	return r, send.origin
}

// Pending reports whether a send is incomplete and owned by the engine.
func (q *RestingSends) Pending(n RestingID) bool {
	ref := q.ref(n)
	return ref != 0 && (q.record(ref).state == restWaits || q.record(ref).state == restActive)
}

// Forget frees the record of a send. If the engine still owns the send, it frees the record when the send completes. It
// reports false if no send has this number.
func (q *RestingSends) Forget(n RestingID) bool {
	ref := q.ref(n)
	if ref == 0 {
		return false
	}
	if s := q.record(ref); s.state == restWaits || s.state == restActive {
		s.discarded = true
	} else {
		q.remove(ref)
	}
	return true
}

// eachRest yields the refs of those sends to the peer that are in state restWaits.
func (l *extendedLink) eachRest(yield func(ref uint32) bool) {
	q := &l.p.e.RestingSends
	for ref := uint32(1); ref <= q.allocated && l.resting > 0; ref++ {
		if s := q.record(ref); s.state == restWaits && int(s.peer) == l.p.rank && !yield(ref) {
			return
		}
	}
}

// endRests ends the sends in state restWaits with the error err. The state machine no longer knows these sends.
func (l *extendedLink) endRests(err error) {
	for ref := range l.eachRest {
		l.p.e.finish(l.p.e.RestingSends.restore(ref), err)
	}
}

// cancelRests asks the peer to cancel the sends in state restWaits.
func (l *extendedLink) cancelRests(err error) {
	q := &l.p.e.RestingSends
	for ref := range l.eachRest {
		l.touchedConn().WakeSend(q.record(ref).number)
		if r := q.active[ref]; l.cancel(r) {
			l.p.e.finish(r, err)
		}
		l.restSend(ref)
	}
}

// restWait returns the wait of the oldest send in state restWaits. It must scan all records to find it.
func (l *extendedLink) restWait() (waiting Waiting, ok bool) {
	var oldest *restingSend
	for ref := range l.eachRest {
		if s := l.p.e.RestingSends.record(ref); oldest == nil || s.posted < oldest.posted {
			oldest = s
		}
	}
	if oldest == nil {
		return waiting, false
	}
	st := extended.SendState{Comm: oldest.comm, Tag: uint32(oldest.tag), Wait: extended.Wait{
		State: extended.WaitClear, Local: uint32(l.p.e.rank), Remote: uint32(l.p.rank),
		Since: min(oldest.posted, l.p.e.now), Length: int64(oldest.length),
	}}
	waiting = Waiting{IsTransferring: true, peer: l.p, send: st}
	waiting.Wait, waiting.Send = sendWait(&st), true
	waiting.req = &Request{kind: oldest.kind, peer: l.p.rank, p: l.p, posted: oldest.posted, tag: oldest.tag,
		comm: oldest.comm}
	return waiting, true
}
