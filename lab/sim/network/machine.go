package network

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// machine simulates how a cluster executes a collective call.
type machine struct {
	Cluster
	algorithm, barrier *coll.Algorithm
	clock              sim.Clock
	ranks              []rank
	hosts              []host
	switches           []port
	free               *message
}

// port models a network interface. Its fields are the times from which it is free to send and to receive.
type port struct{ sendFree, recvFree sim.Cycle }

// host holds the network interface of a host, and its cores if there are fewer cores than ranks.
type host struct {
	port
	cores []core
}

// kind is the type of a message.
type kind uint8

const (
	// kindEager carries data that is sent without waiting until the receive is posted.
	kindEager kind = iota
	// kindRequest announces data, kindClear asks for the data, and kindAck acknowledges it.
	kindRequest
	kindClear
	kindData
	kindAck
	// kindFlowRequest and kindFlowClear synchronize a flow. kindPiece carries a piece of its data.
	kindFlowRequest
	kindFlowClear
	kindPiece
	// kindNotice notifies a waiting rank that another rank has published.
	kindNotice
)

// message is a message on its path between two ranks.
type message struct {
	machine  *machine
	kind     kind
	from, to *rank
	// bytes is the number of bytes on the wire, and length the length of the data to which the message refers.
	bytes, length int
	// send and recv are the numbers of the steps at the sender and at the receiver.
	send, recv int
	// first and last are the times at which the first burst and the last byte of the message passed the most recent
	// stage.
	first, last sim.Cycle
	// next is the function for the message's next stage. callback is a function without arguments that calls next.
	next     func(*message)
	callback func()
	chain    *message
}

// newMessage returns a message. It may reuse the memory of a message that is no longer needed.
func (m *machine) newMessage(k kind, from, to *rank, bytes int) *message {
	msg := m.free
	if msg == nil {
		msg = &message{machine: m}
		msg.callback = func() { msg.next(msg) }
	} else {
		m.free = msg.chain
	}
	msg.kind, msg.from, msg.to, msg.bytes, msg.length, msg.send, msg.recv, msg.chain = k, from, to, bytes, bytes, 0, 0, nil
	return msg
}

func (p *message) release() { p.chain, p.machine.free = p.machine.free, p }

// scheduleAt schedules the next stage of the message at the given time.
func (p *message) scheduleAt(t sim.Cycle, next func(*message)) {
	p.next = next
	p.machine.clock.After(t-p.machine.clock.Now(), p.callback)
}

// link returns the link between the two ranks.
func (p *message) link() *Link {
	if p.from.host == p.to.host && !p.machine.Loopback {
		return &p.machine.Memory
	}
	return &p.machine.Network
}

// burst is the number of bytes after which a receiver can begin to process a message.
const burst = 16 << 10

// processorTime returns how long a processor at one end of the link is busy with n bytes.
func (l *Link) processorTime(n int) sim.Cycle {
	return toCycles(l.Overhead + float64(n)*l.OverheadByte)
}

// startSend makes the sender's processor start on the message at time t. cost is the processor time of the whole
// message.
func (p *message) startSend(t, cost sim.Cycle) {
	p.last = t + cost
	p.scheduleAt(t+p.link().processorTime(min(p.bytes, burst)), (*message).depart)
}

// transferTimes returns how long the first burst of the message and the whole message take at the given cost per byte.
func (p *message) transferTimes(byte float64) (first, all sim.Cycle) {
	return toCycles(float64(min(p.bytes, burst)) * byte), toCycles(float64(p.bytes) * byte)
}

// depart sends the message as soon as the interfaces on the sender's side are free.
func (p *message) depart() {
	m, link := p.machine, p.link()
	now := m.clock.Now()
	if p.from.host == p.to.host {
		p.last += toCycles(link.Latency)
		p.scheduleAt(now+toCycles(link.Latency), (*message).arrive)
		return
	}
	first, all := p.transferTimes(link.GapByte)
	out := &m.hosts[p.from.host].sendFree
	begin := max(now, *out)
	*out = begin + max(toCycles(link.Gap), all)
	p.first, p.last = begin+first, max(p.last, begin+all)
	latency := toCycles(link.Latency)
	if from, to := m.switchOf(p.from.host), m.switchOf(p.to.host); from != to {
		first, all := p.transferTimes(m.Uplink.GapByte)
		a, b := &m.switches[from].sendFree, &m.switches[to].recvFree
		begin = max(begin, *a, *b)
		*a = begin + max(toCycles(m.Uplink.Gap), all)
		*b = *a
		p.first, p.last = max(p.first, begin+first), max(p.last, begin+all)
		latency += toCycles(m.Uplink.Latency)
	}
	p.first, p.last = p.first+latency, p.last+latency
	p.scheduleAt(begin+latency, (*message).enter)
}

func (m *machine) switchOf(host int) int {
	if m.PerSwitch == 0 {
		return 0
	}
	return host / m.PerSwitch
}

// enter models the arrival of the message at the receiver's network interface.
func (p *message) enter() {
	m, l := p.machine, p.link()
	first, all := p.transferTimes(l.GapByte)
	in := &m.hosts[p.to.host].recvFree
	begin := max(m.clock.Now(), *in)
	*in = begin + max(toCycles(l.Gap), all)
	p.last = max(p.last, begin+all)
	p.scheduleAt(max(p.first, begin+first), (*message).arrive)
}

// arrive passes the message to the receiver's processor, which stays busy at least until it has received the last
// burst.
func (p *message) arrive() {
	if p.kind == kindNotice {
		p.to.enqueueWork(item{kind: itemStep, cost: p.machine.publishCost(), number: p.recv})
		p.release()
		return
	}
	l := p.link()
	first, _ := p.transferTimes(l.OverheadByte)
	p.to.enqueueWork(item{kind: itemReceive, cost: l.processorTime(p.bytes), notBefore: p.last + first, message: p})
}

func (m *machine) publishCost() sim.Cycle { return toCycles(m.Host.Publish) }

// stepCost returns the processor time of a step that sends and receives no message.
func (m *machine) stepCost(step *coll.Step) sim.Cycle {
	switch step.Kind {
	case coll.StepCopy:
		return toCycles(float64(step.Len) * m.Host.Copy)
	case coll.StepPack:
		return toCycles(float64(step.Count*step.Len) * m.Host.Copy)
	case coll.StepReduce, coll.StepReduceRight:
		return toCycles(float64(step.Len) * m.Host.Reduce)
	case coll.StepPublish, coll.StepAwait:
		return m.publishCost()
	}
	return 0
}
