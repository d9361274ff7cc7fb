package mpi

import (
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// restingRequests holds the requests of sends that the device keeps for a rank because many other sends wait for the
// same peer; a program may have millions of them. These requests share a core, and the generation in a handle is the
// device's number of the send. A call on such a request wakes the send, that is, turns it into an ordinary request, and
// puts it to rest again afterwards.
type restingRequests struct {
	core       core
	sends      mpe.RestingSends // nil if the device keeps no sends
	mu         sync.Mutex
	wokenSends map[uint64]*wokenSend
}

// wokenSend is a resting send turned into an ordinary request while calls use it.
type wokenSend struct {
	Request
	activeCalls int
	notified    bool // a registered channel counts as an active call
}

// restingSends returns the restingRequests to which the request belongs, or nil.
func (r Request) restingSends() *restingRequests {
	if r.core == nil {
		return nil
	}
	return r.core.resting
}

// add hands over a send to the device and returns its request.
func (q *restingRequests) add(k *call, op mpe.Op) Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Request{&q.core, uint64(q.sends.Rest(op, k.origin()))}
}

// origins lists the calls whose sends may rest.
var origins = [...]string{"Isend", "Issend", "Irsend"}

// origin returns a description of the call for the device. All calls of the same kind on a communicator share it, so
// that it needs no memory per message.
func (k *call) origin() *mpe.Origin {
	o := &k.comm.origins[max(slices.Index(origins[:], k.op), 0)]
	o.Comm, o.Call = k.comm, k.op
	return o
}

// wake turns the send with the given number into an ordinary request, which is valid until the caller calls rest. For a
// stale number, it returns a stale request.
func (q *restingRequests) wake(number uint64) Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wakeLocked(number)
}

// wakeLocked implements wake; the caller holds mu. Concurrent calls on the same send share one request.
func (q *restingRequests) wakeLocked(number uint64) Request {
	if a := q.wokenSends[number]; a != nil {
		a.activeCalls++
		return a.Request
	}
	op, o, from := q.sends.Wake(mpe.RestingID(number))
	if op == nil {
		return Request{new(core), 1}
	}
	c := from.Comm.(*Comm)
	k := call{
		comm: c, op: from.Call, kind: o.Kind, datatype: o.Datatype, peer: int(c.worldToLocal[o.Peer]), tag: o.Tag,
		bytes: o.Buf,
	}
	a := &wokenSend{Request: k.newRequest(op, false), activeCalls: 1}
	if q.wokenSends == nil {
		q.wokenSends = map[uint64]*wokenSend{}
	}
	q.wokenSends[number] = a
	return a.Request
}

// rest ends one use of the ordinary request of the send with the given number. After the last use, the send rests again
// unless it has been waited for or freed.
func (q *restingRequests) rest(number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.restLocked(number)
}

// restLocked ends a call's use of a send. The last one hands the send back to the device, or makes the device forget it
// if the request was completed or freed.
func (q *restingRequests) restLocked(number uint64) {
	send := q.wokenSends[number]
	if send == nil { // the handle is stale
		return
	}
	if send.activeCalls--; send.activeCalls > 0 {
		return
	}
	delete(q.wokenSends, number)
	c := send.core
	c.mu.Lock()
	if c.generation != send.generation { // it has been waited for, or freed
		c.mu.Unlock()
		q.sends.Forget(mpe.RestingID(number))
		return
	}
	op, origin := c.op, c.call.origin()
	c.op = nil
	c.release() // before the device can reuse the operation, and with it the core
	q.sends.Rest(op, origin)
}

// free releases a request.
func (q *restingRequests) free(number uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.wokenSends[number]; a != nil {
		a.activeCalls++
		defer q.restLocked(number)
		return a.Free()
	}
	if !q.sends.Forget(mpe.RestingID(number)) {
		return errorf(ErrRequest, "Free", staleRequestText)
	}
	return nil
}

// state implements Request.state.
func (q *restingRequests) state(number uint64) state {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.wokenSends[number] == nil && q.sends.Pending(mpe.RestingID(number)) {
		return active
	}
	defer q.restLocked(number)
	return q.wakeLocked(number).state()
}

// notify implements Request.notify.
func (q *restingRequests) notify(number uint64, n chan<- struct{}) (p *process, taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.restLocked(number)
	r := q.wakeLocked(number)
	send := q.wokenSends[number]
	if send == nil {
		return nil, false
	}
	if p, taken = r.notify(n); taken {
		return nil, true
	}
	if wanted := n != nil; wanted != send.notified {
		send.notified = wanted
		if wanted {
			send.activeCalls++
		} else {
			send.activeCalls--
		}
	}
	return p, false
}
