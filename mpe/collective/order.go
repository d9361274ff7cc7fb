package collective

import (
	"encoding/binary"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// The order of a broadcast's chain depends on the amount of other data that ranks have to send, as far as the root
// knows. All ranks must know the order when their part begins. Sending the order with the data would cost each rank
// another message or copy. Instead, the order changes rarely, and the root announces it in advance:
//
//   - A rank that makes an ordered broadcast reports its status to the root if it differs from the last reported
//     status. It does not wait until the root has received the report.
//   - The root derives an order from the reported statuses, and announces it to all members during a broadcast. The
//     order applies from the second broadcast after that one. The root begins the first broadcast after it only when
//     all members have received the announcement.
//   - A rank executes ordered broadcasts sequentially. When it reaches the second broadcast, the root must have begun
//     the first, so the rank has received the announcement.
//
// If nothing changes, nothing is sent.

// Communicators of internal messages. A program's communicators never have these numbers.
const (
	// statusComm carries messages whose tag is a coll.Status. Their payload is empty, or the abort of a call (see
	// sendAbort).
	statusComm = 1<<32 - 1
	// orderComm carries the announcements. An announcement consists of the communicator and the number of the first
	// broadcast that it applies to, four bytes each, and the status of each member, two bits each.
	orderComm = 1<<32 - 3
)

const (
	orderHeader = 8
	// maxAnnounced is the maximum number of announcements stored per root. A correct root is at most two ahead.
	maxAnnounced = 8
	// maxOrder is the maximum length of an announcement in bytes.
	maxOrder = 1 << 15
)

// Ordering determines the order of the ranks in the chain for broadcasts from one root in a communicator.
type Ordering struct {
	// posted counts the broadcasts posted on this rank.
	posted uint32
	// status holds the status of each member, which determines the order; nil means that all ranks are free. announced
	// lists the announced statuses that apply to later broadcasts.
	status    []coll.Status
	announced []announcement
	// unconfirmed is used if this rank is the root. It is the number of members that have not confirmed its last
	// announcement.
	unconfirmed int
	// busy means that a broadcast is in progress. waiting lists the queued broadcasts.
	busy    bool
	waiting []*Execution
}

// announcement holds the status of each member, which determines the order from broadcast number firstNumber on.
type announcement struct {
	firstNumber uint32
	status      []coll.Status
}

// ordering returns the Ordering for broadcasts from a root, which is given as a world rank.
func (a *agreement) ordering(root int) *Ordering {
	if a.orders == nil {
		a.orders = map[int]*Ordering{}
	}
	if a.orders[root] == nil {
		a.orders[root] = &Ordering{}
	}
	return a.orders[root]
}

// tryBegin reports whether an ordered broadcast may begin now. If not, tryBegin queues it.
func (x *Execution) tryBegin() bool {
	o := x.order
	if o.busy || o.unconfirmed > 0 || len(o.waiting) > 0 {
		o.waiting = append(o.waiting, x)
		return false
	}
	o.busy = true
	return true
}

// beginQueued begins the next queued broadcast if there is one and it need not wait any longer.
func (e *Executor) beginQueued(ordering *Ordering) {
	if ordering.busy || ordering.unconfirmed > 0 || len(ordering.waiting) == 0 {
		return
	}
	x := ordering.waiting[0]
	ordering.waiting = append(ordering.waiting[:0], ordering.waiting[1:]...)
	ordering.busy = true
	x.run()
}

// setOrder sets the order of the call's chain, and reports or announces changes of status.
func (x *Execution) setOrder() {
	call, ordering := &x.Call, x.order
	for len(ordering.announced) > 0 && int32(x.broadcastNumber-ordering.announced[0].firstNumber) >= 0 {
		ordering.status = ordering.announced[0].status
		ordering.announced = append(ordering.announced[:0], ordering.announced[1:]...)
	}
	if slices.ContainsFunc(ordering.status, func(s coll.Status) bool { return s != coll.Free }) {
		call.Order = coll.TransmissionOrder(call.Root, ordering.status, call.OrderForm)
	}
	if call.Rank == call.Root {
		x.executor.announceOrder(x)
	} else {
		x.executor.reportStatus(x.Members[call.Root])
	}
}

// reportStatus reports this rank's status to a root, unless the status is the one that it last reported to this root.
func (e *Executor) reportStatus(root int) {
	if now, of := coll.StatusOf(e.engine.UnsentBytes()), &e.ranks[root]; now != of.reported {
		of.reported = now
		e.engine.SendInternal(root, statusComm, uint32(now), nil, nil)
	}
}

// announceOrder announces a new order to the members if the reported statuses have changed.
func (e *Executor) announceOrder(exec *Execution) {
	call, ordering := &exec.Call, exec.order
	if len(ordering.announced) > 0 {
		return // one announcement at a time
	}
	status, changed := make([]coll.Status, call.Ranks), false
	for i, rank := range exec.Members {
		if i != call.Rank {
			status[i] = call.OrderForm.Key(e.ranks[rank].status)
		}
		changed = changed || status[i] != coll.Free && ordering.status == nil || ordering.status != nil &&
			status[i] != ordering.status[i]
	}
	if !changed {
		return
	}
	from := exec.broadcastNumber + 2
	ordering.announced = append(ordering.announced, announcement{from, status})
	text := binary.LittleEndian.AppendUint32(make([]byte, 0, orderHeader), exec.Comm)
	text = binary.LittleEndian.AppendUint32(text, from)
	text = append(text, coll.PackStatus(status)...)
	for i, rank := range exec.Members {
		if i != call.Rank {
			ordering.unconfirmed++
			e.engine.SendInternal(rank, orderComm, 0, text, ordering)
		}
	}
}

// OrderConfirmed records that a member has received an announcement, or will never receive it.
func (e *Executor) OrderConfirmed(o *Ordering) {
	if o.unconfirmed--; o.unconfirmed == 0 {
		e.ready = append(e.ready, o)
	}
}

// Internal reports whether a communicator carries messages between Executors.
func Internal(comm uint32) bool { return comm == statusComm || comm == orderComm }

// InternalOpened handles the announcement of a message from another rank's Executor. It reports whether the engine must
// pass the payload to InternalArrived.
func (e *Executor) InternalOpened(rank int, comm uint32, tag int32, bytes int64) bool {
	if comm == statusComm {
		e.ranks[rank].status = coll.Status(tag & 3)
		return bytes == abortLen
	}
	return bytes <= maxOrder
}

// InternalArrived handles the payload of a message from another rank's Executor.
func (e *Executor) InternalArrived(rank int, comm uint32, b []byte) {
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
			o.announced = append(o.announced,
				announcement{binary.LittleEndian.Uint32(b[4:]), coll.UnpackStatus(b[orderHeader:], len(a.members))})
		}
	}
}
