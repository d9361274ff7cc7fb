package match

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// entry is a receive or a message of the model.
type entry struct {
	source, tag int32
	id          int // the stored value
	order       uint64
	handle      Handle
}

// fits reports whether a receive matches a message, according to the MPI standard.
func fits(rsource, rtag, source, tag int32) bool {
	return (rsource == AnySource || rsource == source) && (rtag == AnyTag || rtag == tag)
}

// model runs each operation on a Matcher and on plain slices, oldest first, and panics if the results differ.
type model struct {
	m        *Matcher[int, int]
	limits   Limits
	prq, umq []entry
	matched  []entry  // messages that may be restored
	gone     []Handle // stale
	id       int
	matches  int // total
	deepest  int // maximum depth of the queues
}

type mismatch string

func newModel(l Limits) *model {
	return &model{m: New[int, int](l), limits: l}
}

func (o *model) want(ok bool, format string, args ...any) {
	if !ok {
		panic(mismatch(fmt.Sprintf(format, args...)))
	}
}

// forget records a handle as stale.
func (o *model) forget(h Handle) {
	if len(o.gone) == 64 {
		o.gone = o.gone[:copy(o.gone, o.gone[32:])]
	}
	o.gone = append(o.gone, h)
}

// keep records a message that has matched.
func (o *model) keep(e entry) {
	if len(o.matched) == 64 {
		o.matched = o.matched[:copy(o.matched, o.matched[32:])]
	}
	o.matched = append(o.matched, e)
	o.matches++
	o.deepest = max(o.deepest, len(o.prq), len(o.umq))
}

func (o *model) receiveFor(source, tag int32) int {
	for i := range o.prq {
		if e := &o.prq[i]; fits(e.source, e.tag, source, tag) {
			return i
		}
	}
	return -1
}

func (o *model) messageFor(source, tag int32) int {
	for i := range o.umq {
		if e := &o.umq[i]; fits(source, tag, e.source, e.tag) {
			return i
		}
	}
	return -1
}

func (o *model) takeMessage(i int) {
	e := o.umq[i]
	o.umq = slices.Delete(o.umq, i, i+1)
	o.forget(e.handle)
	o.keep(e)
}

func (o *model) post(source, tag int32) {
	o.id++
	msg, ok, h, err := o.m.Post(source, tag, o.id)
	if i := o.messageFor(source, tag); i >= 0 {
		o.want(err == nil && ok && h == Handle{} && msg == o.umq[i].id,
			"Post(%d, %d) = %d, %v, %v, %v, want message %d", source, tag, msg, ok, h, err, o.umq[i].id)
		o.takeMessage(i)
		return
	}
	if len(o.prq) == limit(o.limits.Posted) {
		o.want(errors.Is(err, ErrFull) && !ok && h == Handle{}, "Post(%d, %d) at the limit: %v, %v, %v", source, tag,
			ok, h, err)
		return
	}
	o.want(err == nil && !ok && h != Handle{} && msg == 0, "Post(%d, %d) = %d, %v, %v, %v, want it queued", source, tag,
		msg, ok, h, err)
	o.prq = append(o.prq, entry{source: source, tag: tag, id: o.id, handle: h})
}

func (o *model) arrive(source, tag int32) {
	o.id++
	before := o.m.Order()
	r, ok, h, err := o.m.Arrive(source, tag, o.id)
	order := o.m.Order()
	o.want(order > before, "Order went from %d to %d", before, order)
	o.arrived(entry{source: source, tag: tag, id: o.id, order: order}, r, ok, h, err)
}

// arrived checks the results of Arrive or Restore for a message.
func (o *model) arrived(e entry, r int, ok bool, h Handle, err error) {
	if i := o.receiveFor(e.source, e.tag); i >= 0 {
		o.want(err == nil && ok && h == Handle{} && r == o.prq[i].id,
			"Arrive(%d, %d) = %d, %v, %v, %v, want receive %d", e.source, e.tag, r, ok, h, err, o.prq[i].id)
		o.forget(o.prq[i].handle)
		o.prq = slices.Delete(o.prq, i, i+1)
		o.keep(e)
		return
	}
	if len(o.umq) == limit(o.limits.Unexpected) {
		o.want(errors.Is(err, ErrFull) && !ok && h == Handle{}, "Arrive(%d, %d) at the limit: %v, %v, %v", e.source,
			e.tag, ok, h, err)
		return
	}
	o.want(err == nil && !ok && h != Handle{} && r == 0, "Arrive(%d, %d) = %d, %v, %v, %v, want it queued", e.source,
		e.tag, r, ok, h, err)
	e.handle = h
	at := len(o.umq)
	for at > 0 && o.umq[at-1].order > e.order {
		at--
	}
	o.umq = slices.Insert(o.umq, at, e)
}

// restore restores one of the matched messages, chosen by pick.
func (o *model) restore(pick int) {
	if len(o.matched) == 0 {
		o.restoreBad(pick)
		return
	}
	i := pick % len(o.matched)
	e := o.matched[i]
	o.matched = slices.Delete(o.matched, i, i+1)
	before := o.m.Order()
	r, ok, h, err := o.m.Restore(e.source, e.tag, e.id, e.order)
	o.want(o.m.Order() == before, "Restore changed Order")
	o.arrived(e, r, ok, h, err)
}

// restoreBad restores to a position that is occupied or was never assigned.
func (o *model) restoreBad(pick int) {
	order := []uint64{0, o.m.Order() + 1, math.MaxUint64}[pick%3]
	if pick%4 == 3 && len(o.umq) > 0 && len(o.umq) < limit(o.limits.Unexpected) && o.receiveFor(0, 0) < 0 {
		order = o.umq[pick%len(o.umq)].order
	}
	_, ok, h, err := o.m.Restore(0, 0, -1, order)
	var bad *OrderError
	o.want(errors.As(err, &bad) && !ok && h == Handle{}, "Restore to %d: %v, %v, %v", order, ok, h, err)
}

func (o *model) cancel(pick int) {
	if len(o.prq) == 0 {
		r, ok := o.m.CancelPosted(Handle{})
		o.want(!ok && r == 0, "CancelPosted(zero) = %d, %v", r, ok)
		return
	}
	i := pick % len(o.prq)
	e := o.prq[i]
	r, ok := o.m.CancelPosted(e.handle)
	o.want(ok && r == e.id, "CancelPosted = %d, %v, want %d", r, ok, e.id)
	o.prq = slices.Delete(o.prq, i, i+1)
	o.forget(e.handle)
}

func (o *model) remove(pick int) {
	if len(o.umq) == 0 {
		msg, ok := o.m.RemoveUnexpected(Handle{})
		o.want(!ok && msg == 0, "RemoveUnexpected(zero) = %d, %v", msg, ok)
		return
	}
	i := pick % len(o.umq)
	e := o.umq[i]
	msg, ok := o.m.RemoveUnexpected(e.handle)
	o.want(ok && msg == e.id, "RemoveUnexpected = %d, %v, want %d", msg, ok, e.id)
	o.umq = slices.Delete(o.umq, i, i+1)
	o.forget(e.handle)
}

// stale tries a stale handle, and valid handles on the wrong queue.
func (o *model) stale(pick int) {
	var hs []Handle
	if len(o.gone) > 0 {
		hs = append(hs, o.gone[pick%len(o.gone)])
	}
	for _, h := range hs {
		_, ok := o.m.CancelPosted(h)
		o.want(!ok, "CancelPosted took the stale %+v", h)
		_, ok = o.m.RemoveUnexpected(h)
		o.want(!ok, "RemoveUnexpected took the stale %+v", h)
	}
	if len(o.prq) > 0 {
		_, ok := o.m.RemoveUnexpected(o.prq[pick%len(o.prq)].handle)
		o.want(!ok, "RemoveUnexpected took the handle of a receive")
	}
	if len(o.umq) > 0 {
		_, ok := o.m.CancelPosted(o.umq[pick%len(o.umq)].handle)
		o.want(!ok, "CancelPosted took the handle of a message")
	}
}

func (o *model) probe(source, tag int32, claim bool) {
	f := o.m.Probe
	if claim {
		f = o.m.Claim
	}
	msg, ok := f(source, tag)
	i := o.messageFor(source, tag)
	if i < 0 {
		o.want(!ok && msg == 0, "Probe(%d, %d) = %d, %v, want none", source, tag, msg, ok)
		return
	}
	o.want(ok && msg == o.umq[i].id, "Probe(%d, %d) = %d, %v, want %d", source, tag, msg, ok, o.umq[i].id)
	if claim {
		o.takeMessage(i)
	}
}

// compare compares the complete queues with the model, and checks their internal invariants.
func (o *model) compare() {
	o.want(o.m.Posted() == len(o.prq), "Posted() = %d, want %d", o.m.Posted(), len(o.prq))
	o.want(o.m.Unexpected() == len(o.umq), "Unexpected() = %d, want %d", o.m.Unexpected(), len(o.umq))
	n := 0
	o.m.EachPosted(func(source, tag int32, r int) bool {
		e := o.prq[n]
		o.want(source == e.source && tag == e.tag && r == e.id, "receive %d is (%d, %d) %d, want %+v", n, source, tag,
			r, e)
		n++
		return true
	})
	o.want(n == len(o.prq), "EachPosted gave %d of %d", n, len(o.prq))
	n = 0
	o.m.EachUnexpected(func(source, tag int32, msg int) bool {
		e := o.umq[n]
		o.want(source == e.source && tag == e.tag && msg == e.id, "message %d is (%d, %d) %d, want %+v", n, source, tag,
			msg, e)
		n++
		return true
	})
	o.want(n == len(o.umq), "EachUnexpected gave %d of %d", n, len(o.umq))
	o.sound(&o.m.prq)
	o.sound(&o.m.umq)
}
