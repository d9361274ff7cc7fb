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
	// core is the core that the rank shares, or nil if it shares none. place is the rank's position on it.
	core      *core
	place     int
	schedule  coll.Schedule
	call      coll.Call // the schedule refers to it
	inBarrier bool
	progress  coll.Progress
	underWay  int
	// queue[head:] is the pending work of the rank's processor. active reports whether the processor has work; it then
	// holds a core or waits for one.
	queue  []item
	head   int
	active bool
	ended  func()
	// began and over are the times at which the rank began and completed the call.
	began, over sim.Cycle
	// posted lists the receives that have no message yet. unexpected maps a sender to its oldest message that has no
	// receive yet. Later messages from the sender are linked by chain.
	posted     []posted
	unexpected map[int]*message
	// published is the number of this rank's publications. waiting lists the ranks that wait for one of them. missing
	// is the number of other ranks' publications that this rank still waits for.
	published int
	waiting   []waiter
	missing   int
	flow      flow
}

type posted struct{ peer, number int }

// waiter is a rank whose step waits until another rank has made count publications.
type waiter struct {
	rank          *rank
	count, number int
}

// flow is this rank's part in a message that is forwarded while it is being received.
type flow struct {
	// step is the step in progress, and number its number. announced reports whether the previous rank has announced
	// its data.
	step      coll.Step
	number    int
	announced bool
	// cleared reports whether the next rank has asked for the data. got and sent are the numbers of bytes received and
	// sent.
	cleared   bool
	got, sent int
}

type itemKind uint8

const (
	// itemBegin begins the call.
	itemBegin itemKind = iota
	// itemStep is a step that sends and receives no message. itemPublish is a publication.
	itemStep
	itemPublish
	// itemSend and itemReceive are the work of a message at its two ends. itemCopy copies an unexpected message.
	// itemPull copies a message from the sender's memory.
	itemSend
	itemReceive
	itemCopy
	itemPull
)

// item is work for a rank's processor: one step, or more+1 steps with consecutive numbers.
type item struct {
	kind         itemKind
	cost         sim.Cycle
	until        sim.Cycle // the earliest time at which it is done
	number, more int
	message      *message
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
	r.work(item{kind: itemBegin, cost: cycles(r.machine.Host.Call)})
}

// work queues work for the processor of the rank.
func (r *rank) work(w item) {
	r.queue = append(r.queue, w)
	if !r.active {
		r.active = true
		if r.core != nil {
			r.core.ready(r)
		} else {
			r.run()
		}
	}
}

// compute queues a step that sends and receives no message. It merges consecutive steps into one item, as there may be
// as many steps as ranks.
func (r *rank) compute(cost sim.Cycle, number int) {
	if last := len(r.queue) - 1; last > r.head && r.queue[last].kind == itemStep &&
		r.queue[last].number+r.queue[last].more+1 == number {
		r.queue[last].cost += cost
		r.queue[last].more++
		return
	}
	r.work(item{kind: itemStep, cost: cost, number: number})
}

// run starts the oldest item of work.
func (r *rank) run() {
	w := &r.queue[r.head]
	begin := r.machine.clock.Now()
	switch w.kind {
	case itemBegin:
		r.began = begin
	case itemSend:
		w.message.begin(begin, w.cost)
	}
	r.machine.clock.After(max(begin+w.cost, w.until)-r.machine.clock.Now(), r.ended)
}

// end completes the oldest item of work.
func (r *rank) end() {
	w := r.queue[r.head]
	r.head++
	if r.head == len(r.queue) {
		r.queue, r.head = r.queue[:0], 0
	}
	switch w.kind {
	case itemBegin:
		r.over = r.machine.clock.Now()
		r.issue()
	case itemStep, itemCopy:
		for i := range w.more {
			r.progress.Done(w.number + i)
		}
		r.underWay -= w.more
		r.done(w.number + w.more)
	case itemPublish:
		r.publish()
		r.done(w.number)
	case itemSend:
		if w.number > 0 {
			r.done(w.number)
		}
	case itemReceive:
		r.receive(w.message)
	case itemPull:
		r.reply(w.message, kindAck)
		r.done(w.number)
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

// done completes a step.
func (r *rank) done(number int) {
	r.progress.Done(number)
	r.underWay--
	r.over = r.machine.clock.Now()
	r.issue()
	if r.inBarrier && r.underWay == 0 && r.progress.Over() {
		r.beginCall()
	}
}

// issue starts all steps that can begin.
func (r *rank) issue() {
	for !(r.schedule.InOrder || r.machine.Blocking) || r.underWay == 0 {
		step, number, ok := r.progress.Next()
		if !ok {
			return
		}
		r.underWay++
		m := r.machine
		switch {
		case step.Piece > 0:
			r.beginFlow(step, number)
		case step.Kind == coll.StepSend:
			r.send(&m.ranks[step.Peer], step.Len, number)
		case step.Kind == coll.StepRecv:
			r.post(step.Peer, number)
		case step.Kind == coll.StepJoin:
			r.progress.Done(number)
			r.underWay--
		case step.Kind == coll.StepPublish:
			r.work(item{kind: itemPublish, cost: m.stepCost(step), number: number})
		case step.Kind == coll.StepAwait:
			r.await(step, number)
		default:
			r.compute(m.stepCost(step), number)
		}
	}
}

// transmit queues a message. If number is not 0, the step with that number is complete when the message departs.
func (r *rank) transmit(p *message, number int) {
	r.work(item{kind: itemSend, cost: p.link().processor(p.bytes), number: number, message: p})
}

func (r *rank) send(to *rank, n, number int) {
	p := r.machine.message(kindEager, r, to, n)
	if n <= p.link().Eager {
		r.transmit(p, number)
		return
	}
	p.kind, p.bytes, p.send = kindRequest, 0, number
	r.transmit(p, 0)
}

// reply sends a message about the data of p to the sender of p.
func (r *rank) reply(p *message, k kind) {
	p.kind, p.from, p.to, p.bytes = k, p.to, p.from, 0
	r.transmit(p, 0)
}

// post posts a receive. If there is an unexpected message for it, it matches the two.
func (r *rank) post(peer, number int) {
	p := r.unexpected[peer]
	switch {
	case p == nil:
		r.posted = append(r.posted, posted{peer, number})
		return
	case p.chain == nil:
		delete(r.unexpected, peer)
	default:
		r.unexpected[peer] = p.chain
	}
	if p.kind == kindEager {
		r.work(item{kind: itemCopy, cost: cycles(float64(p.bytes) * r.machine.Host.Copy), number: number})
		p.release()
		return
	}
	r.fetch(p, number)
}

// receive handles a message that the processor has accepted.
func (r *rank) receive(p *message) {
	switch p.kind {
	case kindEager, kindRequest:
		r.match(p)
	case kindClear:
		p.kind, p.from, p.to, p.bytes = kindData, r, p.from, p.length
		r.transmit(p, 0)
	case kindData:
		number := p.recv
		r.reply(p, kindAck)
		r.done(number)
	case kindAck:
		number := p.send
		p.release()
		r.done(number)
	default:
		r.flowed(p)
	}
}

func (r *rank) match(p *message) {
	i := slices.IndexFunc(r.posted, func(q posted) bool { return q.peer == p.from.number })
	if i < 0 {
		r.keep(p)
		return
	}
	number := r.posted[i].number
	r.posted = slices.Delete(r.posted, i, i+1)
	if p.kind == kindRequest {
		r.fetch(p, number)
		return
	}
	p.release()
	r.done(number)
}

// keep stores a message until its receive is posted.
func (r *rank) keep(p *message) {
	p.chain = nil
	last := r.unexpected[p.from.number]
	if last == nil {
		if r.unexpected == nil {
			r.unexpected = map[int]*message{}
		}
		r.unexpected[p.from.number] = p
		return
	}
	for last.chain != nil {
		last = last.chain
	}
	last.chain = p
}

// fetch asks the sender for the data that a request announced, or copies the data from the sender's memory.
func (r *rank) fetch(p *message, number int) {
	if l := p.link(); l.Pulls {
		r.work(item{kind: itemPull, cost: cycles(float64(p.length) * l.OverheadByte), number: number, message: p})
		return
	}
	p.recv = number
	r.reply(p, kindClear)
}

// Flows.

// beginFlow starts the step of a flow. It announces the data to the next rank.
func (r *rank) beginFlow(step *coll.Step, number int) {
	f := &r.flow
	f.step, f.number = *step, number
	if step.Sends() {
		r.transmit(r.machine.message(kindFlowRequest, r, &r.machine.ranks[step.Dest()], 0), 0)
	}
	r.ask()
}

// ask asks the previous rank for data. It does so only if that rank has announced data, and if this rank may send it
// on.
func (r *rank) ask() {
	f := &r.flow
	if f.number > 0 && f.step.Receives() && f.announced && (f.cleared || !f.step.Sends()) {
		r.transmit(r.machine.message(kindFlowClear, r, &r.machine.ranks[f.step.Peer], 0), 0)
	}
}

func (r *rank) flowed(p *message) {
	f, k, n := &r.flow, p.kind, p.bytes
	p.release()
	switch k {
	case kindFlowRequest:
		f.announced = true
		r.ask()
	case kindFlowClear:
		f.cleared = true
		r.ask()
		if !f.step.Receives() {
			f.got = f.step.Len
			r.forward()
		}
	case kindPiece:
		f.got += n
		if f.step.Sends() {
			r.forward()
		} else if f.got == f.step.Len {
			r.done(f.number)
		}
	}
}

// forward sends all bytes that have been received but not yet sent.
func (r *rank) forward() {
	f := &r.flow
	for f.sent < f.got {
		n := min(f.step.Piece, f.got-f.sent)
		f.sent += n
		number := 0
		if f.sent == f.step.Len {
			number = f.number
		}
		r.transmit(r.machine.message(kindPiece, r, &r.machine.ranks[f.step.Dest()], n), number)
	}
}

// Shared buffers.

// publish counts a publication, and notifies the ranks that waited for it.
func (r *rank) publish() {
	r.published++
	r.waiting = slices.DeleteFunc(r.waiting, func(w waiter) bool {
		if w.count > r.published {
			return false
		}
		if w.rank.missing--; w.rank.missing == 0 {
			p := r.machine.message(kindNotice, r, w.rank, 0)
			p.recv = w.number
			p.at(r.machine.clock.Now()+cycles(r.machine.Host.Visible), (*message).arrive)
		}
		return true
	})
}

// await waits for the publications on which a step depends.
func (r *rank) await(step *coll.Step, number int) {
	first, last := step.Peer, step.Peer
	if step.Peer == coll.Everyone {
		first, last = 0, len(r.machine.ranks)-1
	}
	for i := first; i <= last; i++ {
		if p := &r.machine.ranks[i]; p != r && p.published < step.Count {
			p.waiting = append(p.waiting, waiter{r, step.Count, number})
			r.missing++
		}
	}
	if r.missing == 0 {
		r.work(item{kind: itemStep, cost: r.machine.stepCost(step), number: number})
	}
}
