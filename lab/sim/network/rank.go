package network

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// rank executes its schedule for the call.
type rank struct {
	machine      *machine
	number, host int
	// core is the core that the rank shares with other ranks, or nil if it has its own. corePos is the rank's position
	// in the round-robin order of that core.
	core            *core
	corePos         int
	schedule        coll.Schedule
	call            coll.Call // the schedule refers to it
	inBarrier       bool
	progress        coll.Progress
	stepsInProgress int
	// queue[head:] is the pending work of the rank's processor. active reports whether the processor has work; it then
	// holds a core or waits for one.
	queue   []item
	head    int
	active  bool
	endFunc func()
	// beginTime and endTime are the times at which the rank began and completed the call.
	beginTime, endTime sim.Cycle
	// posted lists the posted receives that no message has matched. unexpected maps each sender to its oldest message
	// without a posted receive. The message's field chain links it to later ones from that sender.
	posted     []postedRecv
	unexpected map[int]*message
	// published is the number of publications that this rank has made. waiters lists the ranks that wait for one of
	// them. missingCount is the number of publications of other ranks that this rank is still waiting for.
	published    int
	waiters      []waiter
	missingCount int
	flow         flow
}

// postedRecv is a posted receive from a peer. number is the number of its step.
type postedRecv struct{ peer, number int }

// waiter is a rank whose step waits until another rank has made count publications.
type waiter struct {
	rank          *rank
	count, number int
}

// flow is this rank's part in a message that is forwarded while it is being received.
type flow struct {
	// step is the step in progress, and number its position in the schedule. announced reports whether the previous
	// rank has announced its data.
	step      coll.Step
	number    int
	announced bool
	// cleared reports whether the next rank has asked for the data. received and sentBytes are the numbers of bytes
	// received and sent.
	cleared             bool
	received, sentBytes int
}

type itemKind uint8

const (
	// itemBegin begins the call.
	itemBegin itemKind = iota
	// itemStep executes a step that sends and receives no message. itemPublish makes a publication.
	itemStep
	itemPublish
	// itemSend and itemReceive process a message at its two ends. itemCopy copies an unexpected message. itemPull
	// copies a message from the sender's memory.
	itemSend
	itemReceive
	itemCopy
	itemPull
)

// item is work for a rank's processor: one step, or more+1 steps with consecutive numbers.
type item struct {
	kind               itemKind
	cost               sim.Cycle
	notBefore          sim.Cycle // earliest time at which the work is done
	number, extraSteps int
	message            *message
}

// start begins the call, or the barrier before the call if there is one.
func (r *rank) start() {
	r.published, r.flow = 0, flow{}
	if r.inBarrier = r.machine.Barrier; !r.inBarrier {
		r.beginCall()
		return
	}
	barrier := coll.Call{Collective: coll.Barrier, Rank: r.number, Ranks: r.machine.Ranks, Elem: r.call.Elem,
		Token: r.call.Token}
	r.machine.barrier.Build(&r.schedule, &barrier)
	r.begin()
}

func (r *rank) beginCall() {
	r.inBarrier = false
	r.machine.algorithm.Build(&r.schedule, &r.call)
	r.begin()
}

func (r *rank) begin() {
	r.progress.Begin(&r.schedule)
	r.enqueueWork(item{kind: itemBegin, cost: toCycles(r.machine.Host.Call)})
}

// enqueueWork queues work for the processor of the rank.
func (r *rank) enqueueWork(w item) {
	r.queue = append(r.queue, w)
	if !r.active {
		r.active = true
		if r.core != nil {
			r.core.markReady(r)
		} else {
			r.run()
		}
	}
}

// enqueueStep queues a step that sends and receives no message. It merges consecutive steps into one item, because
// there may be as many steps as ranks.
func (r *rank) enqueueStep(cost sim.Cycle, number int) {
	if last := len(r.queue) - 1; last > r.head && r.queue[last].kind == itemStep &&
		r.queue[last].number+r.queue[last].extraSteps+1 == number {
		r.queue[last].cost += cost
		r.queue[last].extraSteps++
		return
	}
	r.enqueueWork(item{kind: itemStep, cost: cost, number: number})
}

// run starts the oldest item of work.
func (r *rank) run() {
	w := &r.queue[r.head]
	begin := r.machine.clock.Now()
	switch w.kind {
	case itemBegin:
		r.beginTime = begin
	case itemSend:
		w.message.startSend(begin, w.cost)
	}
	r.machine.clock.After(max(begin+w.cost, w.notBefore)-r.machine.clock.Now(), r.endFunc)
}

// finishItem completes the oldest item of work.
func (r *rank) finishItem() {
	w := r.queue[r.head]
	r.head++
	if r.head == len(r.queue) {
		r.queue, r.head = r.queue[:0], 0
	}
	switch w.kind {
	case itemBegin:
		r.endTime = r.machine.clock.Now()
		r.issue()
	case itemStep, itemCopy:
		for i := range w.extraSteps {
			r.progress.MarkDone(w.number + i)
		}
		r.stepsInProgress -= w.extraSteps
		r.completeStep(w.number + w.extraSteps)
	case itemPublish:
		r.publish()
		r.completeStep(w.number)
	case itemSend:
		if w.number > 0 {
			r.completeStep(w.number)
		}
	case itemReceive:
		r.receive(w.message)
	case itemPull:
		r.reply(w.message, kindAck)
		r.completeStep(w.number)
	}
	if r.head < len(r.queue) {
		r.run()
		return
	}
	r.active = false
	if r.core != nil {
		r.core.yield()
	}
}

// completeStep completes a step.
func (r *rank) completeStep(number int) {
	r.progress.MarkDone(number)
	r.stepsInProgress--
	r.endTime = r.machine.clock.Now()
	r.issue()
	if r.inBarrier && r.stepsInProgress == 0 && r.progress.IsDone() {
		r.beginCall()
	}
}

// issue starts all steps that can begin.
func (r *rank) issue() {
	for !(r.schedule.InOrder || r.machine.Blocking) || r.stepsInProgress == 0 {
		step, number, ok := r.progress.Next()
		if !ok {
			return
		}
		r.stepsInProgress++
		m := r.machine
		switch {
		case step.Piece > 0:
			r.beginFlow(step, number)
		case step.Kind == coll.StepSend:
			r.send(&m.ranks[step.Peer], step.Len, number)
		case step.Kind == coll.StepRecv:
			r.post(step.Peer, number)
		case step.Kind == coll.StepJoin:
			r.progress.MarkDone(number)
			r.stepsInProgress--
		case step.Kind == coll.StepPublish:
			r.enqueueWork(item{kind: itemPublish, cost: m.stepCost(step), number: number})
		case step.Kind == coll.StepAwait:
			r.await(step, number)
		default:
			r.enqueueStep(m.stepCost(step), number)
		}
	}
}

// transmit queues a message. If number is not 0, the step with that number is complete when the message departs.
func (r *rank) transmit(p *message, number int) {
	r.enqueueWork(item{kind: itemSend, cost: p.link().processorTime(p.bytes), number: number, message: p})
}

// send sends n bytes: at once up to the link's eager limit, and after a request otherwise. The step of an eager message
// is complete when the message departs, and that of any other when it is acknowledged.
func (r *rank) send(to *rank, n, number int) {
	msg := r.machine.newMessage(kindEager, r, to, n)
	if n <= msg.link().Eager {
		r.transmit(msg, number)
		return
	}
	msg.kind, msg.bytes, msg.send = kindRequest, 0, number
	r.transmit(msg, 0)
}

// reply answers the message p: it sends a message about the same data to the sender of p.
func (r *rank) reply(p *message, k kind) {
	p.kind, p.from, p.to, p.bytes = k, p.to, p.from, 0
	r.transmit(p, 0)
}

// post posts a receive. If an unexpected message matches it, the data of that message is copied or fetched.
func (r *rank) post(peer, number int) {
	msg := r.unexpected[peer]
	switch {
	case msg == nil:
		r.posted = append(r.posted, postedRecv{peer, number})
		return
	case msg.chain == nil:
		delete(r.unexpected, peer)
	default:
		r.unexpected[peer] = msg.chain
	}
	if msg.kind == kindEager {
		r.enqueueWork(item{kind: itemCopy, cost: toCycles(float64(msg.bytes) * r.machine.Host.Copy), number: number})
		msg.release()
		return
	}
	r.fetch(msg, number)
}

// receive handles a message that the processor has accepted.
func (r *rank) receive(msg *message) {
	switch msg.kind {
	case kindEager, kindRequest:
		r.match(msg)
	case kindClear:
		msg.kind, msg.from, msg.to, msg.bytes = kindData, r, msg.from, msg.length
		r.transmit(msg, 0)
	case kindData:
		number := msg.recv
		r.reply(msg, kindAck)
		r.completeStep(number)
	case kindAck:
		number := msg.send
		msg.release()
		r.completeStep(number)
	default:
		r.onFlowMessage(msg)
	}
}

// match gives a message to the oldest receive posted for its sender. Tags are not simulated.
func (r *rank) match(msg *message) {
	i := slices.IndexFunc(r.posted, func(q postedRecv) bool { return q.peer == msg.from.number })
	if i < 0 {
		r.storeUnexpected(msg)
		return
	}
	number := r.posted[i].number
	r.posted = slices.Delete(r.posted, i, i+1)
	if msg.kind == kindRequest {
		r.fetch(msg, number)
		return
	}
	msg.release()
	r.completeStep(number)
}

// storeUnexpected stores a message until its receive is posted.
func (r *rank) storeUnexpected(msg *message) {
	msg.chain = nil
	last := r.unexpected[msg.from.number]
	if last == nil {
		if r.unexpected == nil {
			r.unexpected = map[int]*message{}
		}
		r.unexpected[msg.from.number] = msg
		return
	}
	for last.chain != nil {
		last = last.chain
	}
	last.chain = msg
}

// fetch asks the sender for the data that a request announced, or copies the data from the sender's memory.
func (r *rank) fetch(msg *message, number int) {
	if l := msg.link(); l.Pulls {
		r.enqueueWork(item{kind: itemPull, cost: toCycles(float64(msg.length) * l.OverheadByte), number: number,
			message: msg})
		return
	}
	msg.recv = number
	r.reply(msg, kindClear)
}

// Flows.

// beginFlow starts a step in which this rank forwards data while it receives it. First, it announces the data to the
// next rank.
func (r *rank) beginFlow(step *coll.Step, number int) {
	f := &r.flow
	f.step, f.number = *step, number
	if step.Sends() {
		r.transmit(r.machine.newMessage(kindFlowRequest, r, &r.machine.ranks[step.Dest()], 0), 0)
	}
	r.requestData()
}

// requestData asks the previous rank for data. It does so only when that rank has announced the data, and this rank may
// send it on.
func (r *rank) requestData() {
	f := &r.flow
	if f.number > 0 && f.step.Receives() && f.announced && (f.cleared || !f.step.Sends()) {
		r.transmit(r.machine.newMessage(kindFlowClear, r, &r.machine.ranks[f.step.Peer], 0), 0)
	}
}

// onFlowMessage handles a message of a flow. A rank forwards each piece as it comes, without waiting for the next one.
func (r *rank) onFlowMessage(p *message) {
	f, k, n := &r.flow, p.kind, p.bytes
	p.release()
	switch k {
	case kindFlowRequest:
		f.announced = true
		r.requestData()
	case kindFlowClear:
		f.cleared = true
		r.requestData()
		if !f.step.Receives() {
			f.received = f.step.Len
			r.forward()
		}
	case kindPiece:
		f.received += n
		if f.step.Sends() {
			r.forward()
		} else if f.received == f.step.Len {
			r.completeStep(f.number)
		}
	}
}

// forward sends all bytes that this rank has received but not yet sent.
func (r *rank) forward() {
	f := &r.flow
	for f.sentBytes < f.received {
		n := min(f.step.Piece, f.received-f.sentBytes)
		f.sentBytes += n
		number := 0
		if f.sentBytes == f.step.Len {
			number = f.number
		}
		r.transmit(r.machine.newMessage(kindPiece, r, &r.machine.ranks[f.step.Dest()], n), number)
	}
}

// Shared buffers.

// publish counts a publication, and notifies the ranks that wait for it.
func (r *rank) publish() {
	r.published++
	r.waiters = slices.DeleteFunc(r.waiters, func(w waiter) bool {
		if w.count > r.published {
			return false
		}
		if w.rank.missingCount--; w.rank.missingCount == 0 {
			p := r.machine.newMessage(kindNotice, r, w.rank, 0)
			p.recv = w.number
			p.scheduleAt(r.machine.clock.Now()+toCycles(r.machine.Host.Visible), (*message).arrive)
		}
		return true
	})
}

// await waits for the publications on which a step depends.
func (r *rank) await(step *coll.Step, number int) {
	first, last := step.Peer, step.Peer
	if step.Peer == coll.AllRanks {
		first, last = 0, len(r.machine.ranks)-1
	}
	for i := first; i <= last; i++ {
		if p := &r.machine.ranks[i]; p != r && p.published < step.Count {
			p.waiters = append(p.waiters, waiter{r, step.Count, number})
			r.missingCount++
		}
	}
	if r.missingCount == 0 {
		r.enqueueWork(item{kind: itemStep, cost: r.machine.stepCost(step), number: number})
	}
}
