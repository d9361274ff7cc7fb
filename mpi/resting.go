package mpi

import (
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// resting are requests of sends that a rank left to its device, as many others wait to the same peer: a program may
// have millions. They share a core, whose handles have the device's numbers as generations. A call that concerns one
// wakes it, which makes an ordinary request of it, and lets it rest again afterwards.
type resting struct {
	core  core
	sends mpe.RestingSends // or nil
	mu    sync.Mutex
	awake map[uint64]*awake
}

// awake is a send that calls use, in an ordinary request.
type awake struct {
	Request
	calls    int
	notified bool // a goroutine that waits for one of several counts as a call
}

// restingSends returns those that the request is one of, or nil.
func (r Request) restingSends() *resting {
	if r.core == nil {
		return nil
	}
	return r.core.resting
}

// add lets a send rest.
func (q *resting) add(k *call, op mpe.Op) Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Request{&q.core, uint64(q.sends.Rest(op, k.origin()))}
}

// origins are the calls that start sends which may rest.
var origins = [...]string{"Isend", "Issend", "Irsend"}

// origin describes the call to the device: it takes no memory for each message.
func (k *call) origin() *mpe.Origin {
	o := &k.comm.origins[max(slices.Index(origins[:], k.op), 0)]
	o.Comm, o.Call = k.comm, k.op
	return o
}

// wake returns the ordinary request of a number until rest is called, or a stale one.
func (q *resting) wake(number uint64) Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wakeLocked(number)
}

func (q *resting) wakeLocked(number uint64) Request {
	if a := q.awake[number]; a != nil {
		a.calls++
		return a.Request
	}
	op, o, from := q.sends.Wake(mpe.Resting(number))
	if op == nil {
		return Request{new(core), 1}
	}
	c := from.Comm.(*Comm)
	k := call{
		comm: c, op: from.Call, kind: o.Kind, datatype: o.Datatype, peer: int(c.local[o.Peer]), tag: o.Tag, bytes: o.Buf,
	}
	a := &awake{Request: k.request(op, false), calls: 1}
	if q.awake == nil {
		q.awake = map[uint64]*awake{}
	}
	q.awake[number] = a
	return a.Request
}

// rest ends a use of the ordinary request of a number.
func (q *resting) rest(number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.restLocked(number)
}

func (q *resting) restLocked(number uint64) {
	a := q.awake[number]
	if a == nil { // its handle is stale
		return
	}
	if a.calls--; a.calls > 0 {
		return
	}
	delete(q.awake, number)
	c := a.core
	c.mu.Lock()
	if c.generation != a.generation { // it has been waited for, or freed
		c.mu.Unlock()
		q.sends.Forget(mpe.Resting(number))
		return
	}
	op, origin := c.op, c.call.origin()
	c.op = nil
	c.over() // before the device may use its operation, and so the core, for another
	q.sends.Rest(op, origin)
}

// free ends the use of a request.
func (q *resting) free(number uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.awake[number]; a != nil {
		a.calls++
		defer q.restLocked(number)
		return a.Free()
	}
	if !q.sends.Forget(mpe.Resting(number)) {
		return errorf(ErrRequest, "Free", noRequest)
	}
	return nil
}

// state is that of a request.
func (q *resting) state(number uint64) state {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.awake[number] == nil && q.sends.Pending(mpe.Resting(number)) {
		return active
	}
	defer q.restLocked(number)
	return q.wakeLocked(number).state()
}

// notify is Request.notify.
func (q *resting) notify(number uint64, n chan<- struct{}) (p *process, taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.restLocked(number)
	r := q.wakeLocked(number)
	a := q.awake[number]
	if a == nil {
		return nil, false
	}
	if p, taken = r.notify(n); taken {
		return nil, true
	}
	if wanted := n != nil; wanted != a.notified {
		a.notified = wanted
		if wanted {
			a.calls++
		} else {
			a.calls--
		}
	}
	return p, false
}
