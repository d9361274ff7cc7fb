package collective

import (
	"encoding/binary"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// The order of a broadcast's chain goes by what ranks have to send, as far as the root
// knows. All ranks must know it when their part begins, so it cannot come with the data
// without costing a message or a copy more at each of them. Instead it changes seldom,
// and is announced:
//
//   - A rank that makes an ordered broadcast reports its status to the root, in a message
//     that is not waited for, if it differs from the status that it has reported before.
//   - The root announces the order that follows from the reported status to all members,
//     in one broadcast, to be the order from the second broadcast after it on. It does
//     not begin the first one before all members have the announcement.
//   - A rank begins one ordered broadcast after the other. So when it comes to the
//     second one, the root has begun the first, and it has the announcement.
//
// Where nothing changes nothing is sent.

// The communicators of these messages. No communicator of a program has such a number.
const (
	// statusComm: a message whose tag is a coll.Status. Its payload, if it has one, is the
	// abort of a call (see sendAbort).
	statusComm = 1<<32 - 1
	// orderComm: the communicator and the number of the first broadcast in question,
	// of four bytes each, and the status of its members, two bits each.
	orderComm = 1<<32 - 3
)

const (
	orderHeader = 8
	// maxAnnounced bounds what a peer can have us keep. An honest one is two
	// announcements ahead.
	maxAnnounced = 8
	// maxOrder bounds the length of an announcement.
	maxOrder = 1 << 15
)

// Ordering is the order of the broadcasts of one root in a communicator.
type Ordering struct {
	// posted counts those that were posted here.
	posted uint32
	// status is what the order goes by; nil is all free. announced are the next ones.
	status    []coll.Status
	announced []announced
	// unconfirmed counts the members that do not have the root's announcement yet.
	unconfirmed int
	// busy: one is under way; waiting are those that come after it.
	busy    bool
	waiting []*Execution
}

// announced is what the order goes by from a broadcast on.
type announced struct {
	from   uint32
	status []coll.Status
}

// ordering gives that of a root, by its rank in the world.
func (a *agreement) ordering(root int) *Ordering {
	if a.orders == nil {
		a.orders = map[int]*Ordering{}
	}
	if a.orders[root] == nil {
		a.orders[root] = &Ordering{}
	}
	return a.orders[root]
}

// inTurn reports whether an ordered broadcast may begin now. If not, it does later.
func (x *Execution) inTurn() bool {
	o := x.order
	if o.busy || o.unconfirmed > 0 || len(o.waiting) > 0 {
		o.waiting = append(o.waiting, x)
		return false
	}
	o.busy = true
	return true
}

// nextInTurn begins the next one, if there is one and the root may.
func (e *Executor) nextInTurn(o *Ordering) {
	if o.busy || o.unconfirmed > 0 || len(o.waiting) == 0 {
		return
	}
	x := o.waiting[0]
	o.waiting = append(o.waiting[:0], o.waiting[1:]...)
	o.busy = true
	x.carryOut()
}

// setOrder gives the call its order.
func (x *Execution) setOrder() {
	c, o := &x.Call, x.order
	for len(o.announced) > 0 && int32(x.position-o.announced[0].from) >= 0 {
		o.status = o.announced[0].status
		o.announced = append(o.announced[:0], o.announced[1:]...)
	}
	if slices.ContainsFunc(o.status, func(s coll.Status) bool { return s != coll.Free }) {
		c.Order = coll.TransmissionOrder(c.Root, o.status, c.Form)
	}
	if c.Rank == c.Root {
		x.e.announceOrder(x)
	} else {
		x.e.report(x.Members[c.Root])
	}
}

// report reports to a root what this rank has to send, if that has changed.
func (e *Executor) report(root int) {
	if now, of := coll.StatusOf(e.engine.Unsent()), &e.ranks[root]; now != of.reported {
		of.reported = now
		e.engine.SendInternal(root, statusComm, uint32(now), nil, nil)
	}
}

// announceOrder sends the order that follows from the reported status to the members.
func (e *Executor) announceOrder(x *Execution) {
	c, o := &x.Call, x.order
	if len(o.announced) > 0 {
		return // one after the other
	}
	status, changed := make([]coll.Status, c.Ranks), false
	for i, rank := range x.Members {
		if i != c.Rank {
			status[i] = c.Form.Key(e.ranks[rank].status)
		}
		changed = changed || status[i] != coll.Free && o.status == nil || o.status != nil && status[i] != o.status[i]
	}
	if !changed {
		return
	}
	from := x.position + 2
	o.announced = append(o.announced, announced{from, status})
	text := binary.LittleEndian.AppendUint32(make([]byte, 0, orderHeader), x.Comm)
	text = binary.LittleEndian.AppendUint32(text, from)
	text = append(text, coll.PackStatus(status)...)
	for i, rank := range x.Members {
		if i != c.Rank {
			o.unconfirmed++
			e.engine.SendInternal(rank, orderComm, 0, text, o)
		}
	}
}

// Confirmed notes that a member has an announcement, or will never have it.
func (e *Executor) Confirmed(o *Ordering) {
	if o.unconfirmed--; o.unconfirmed == 0 {
		e.ready = append(e.ready, o)
	}
}

// Internal reports whether the messages of a communicator are those of Executors.
func Internal(comm uint32) bool { return comm == statusComm || comm == orderComm }

// Opened notes that a message of another rank's Executor is announced, and reports whether
// its payload is to be handed to Arrived.
func (e *Executor) Opened(rank int, comm uint32, tag int32, bytes int64) bool {
	if comm == statusComm {
		e.ranks[rank].status = coll.Status(tag & 3)
		return bytes == abortLen
	}
	return bytes <= maxOrder
}

// Arrived reads the payload of such a message.
func (e *Executor) Arrived(rank int, comm uint32, b []byte) {
	if comm == statusComm {
		e.aborts = append(e.aborts, decodeAbort(rank, b))
		return
	}
	if len(b) < orderHeader {
		return
	}
	if a := e.agreements[binary.LittleEndian.Uint32(b)]; a != nil {
		o := a.ordering(rank)
		if len(o.announced) < maxAnnounced {
			o.announced = append(o.announced, announced{binary.LittleEndian.Uint32(b[4:]), coll.UnpackStatus(b[orderHeader:], len(a.members))})
		}
	}
}
