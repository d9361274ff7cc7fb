package network

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// machine simulates a cluster that executes a call.
type machine struct {
	Cluster
	algorithm, barrier *coll.Algorithm
	clock              sim.Clock
	ranks              []rank
	hosts              []host
	switches           []port
	free               *message
}

// port is a network interface. Its fields are the times at which it is next free to send and to receive.
type port struct{ out, in sim.Cycle }

// host has the network interface of a host. It also has the host's cores if there are fewer cores than ranks.
type host struct {
	port
	cores []core
}

// kind is the type of a message.
type kind uint8

const (
	// kindEager carries data that does not wait until its receive is posted.
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

// message is a message in flight between two ranks.
type message struct {
	machine  *machine
	kind     kind
	from, to *rank
	// bytes is the number of bytes on the wire, and length the length of the data to which the message refers.
	bytes, length int
	// send and recv are the numbers of the steps at the sender and at the receiver.
	send, recv int
	// first and last are the times at which the first burst and the last byte have passed the stages so far.
	first, last sim.Cycle
	// next is the next stage of the message. happens is the callback that calls it.
	next    func(*message)
	happens func()
	chain   *message
}

// message returns a message, which may be recycled.
func (m *machine) message(k kind, from, to *rank, bytes int) *message {
	p := m.free
	if p == nil {
		p = &message{machine: m}
		p.happens = func() { p.next(p) }
	} else {
		m.free = p.chain
	}
	p.kind, p.from, p.to, p.bytes, p.length, p.send, p.recv, p.chain = k, from, to, bytes, bytes, 0, 0, nil
	return p
}

func (p *message) release() { p.chain, p.machine.free = p.machine.free, p }

// at schedules the next stage of the message at the given time.
func (p *message) at(t sim.Cycle, next func(*message)) {
	p.next = next
	p.machine.clock.After(t-p.machine.clock.Now(), p.happens)
}

// link returns the link between the two ranks.
func (p *message) link() *Link {
	if p.from.host == p.to.host && !p.machine.Loopback {
		return &p.machine.Memory
	}
	return &p.machine.Network
}

// burst is the number of bytes after whose arrival a receiver can begin to process a message.
const burst = 16 << 10

// processor returns the processor time for n bytes at one end.
func (l *Link) processor(n int) sim.Cycle { return cycles(l.Overhead + float64(n)*l.OverheadByte) }

// begin makes the sender's processor start on the message at time t. cost is the processor time of the whole message.
func (p *message) begin(t, cost sim.Cycle) {
	p.last = t + cost
	p.at(t+p.link().processor(min(p.bytes, burst)), (*message).depart)
}

// times returns how long the first burst and the whole message take, at the given cost per byte.
func (p *message) times(byte float64) (first, all sim.Cycle) {
	return cycles(float64(min(p.bytes, burst)) * byte), cycles(float64(p.bytes) * byte)
}

// depart sends the message when the sender's interfaces are free.
func (p *message) depart() {
	m, l := p.machine, p.link()
	now := m.clock.Now()
	if p.from.host == p.to.host {
		p.last += cycles(l.Latency)
		p.at(now+cycles(l.Latency), (*message).arrive)
		return
	}
	first, all := p.times(l.GapByte)
	out := &m.hosts[p.from.host].out
	begin := max(now, *out)
	*out = begin + max(cycles(l.Gap), all)
	p.first, p.last = begin+first, max(p.last, begin+all)
	latency := cycles(l.Latency)
	if from, to := m.switchOf(p.from.host), m.switchOf(p.to.host); from != to {
		first, all := p.times(m.Uplink.GapByte)
		a, b := &m.switches[from].out, &m.switches[to].in
		begin = max(begin, *a, *b)
		*a = begin + max(cycles(m.Uplink.Gap), all)
		*b = *a
		p.first, p.last = max(p.first, begin+first), max(p.last, begin+all)
		latency += cycles(m.Uplink.Latency)
	}
	p.first, p.last = p.first+latency, p.last+latency
	p.at(begin+latency, (*message).enter)
}

func (m *machine) switchOf(host int) int {
	if m.PerSwitch == 0 {
		return 0
	}
	return host / m.PerSwitch
}

// enter receives the message at the interface of the receiver.
func (p *message) enter() {
	m, l := p.machine, p.link()
	first, all := p.times(l.GapByte)
	in := &m.hosts[p.to.host].in
	begin := max(m.clock.Now(), *in)
	*in = begin + max(cycles(l.Gap), all)
	p.last = max(p.last, begin+all)
	p.at(max(p.first, begin+first), (*message).arrive)
}

// arrive passes the message to the receiver's processor, which is busy at least until it has received the last burst.
func (p *message) arrive() {
	if p.kind == kindNotice {
		p.to.work(item{kind: itemStep, cost: p.machine.publish(), number: p.recv})
		p.release()
		return
	}
	l := p.link()
	first, _ := p.times(l.OverheadByte)
	p.to.work(item{kind: itemReceive, cost: l.processor(p.bytes), until: p.last + first, message: p})
}

func (m *machine) publish() sim.Cycle { return cycles(m.Host.Publish) }

// stepCost returns the processor time of a step that sends and receives no message.
func (m *machine) stepCost(s *coll.Step) sim.Cycle {
	switch s.Kind {
	case coll.StepCopy:
		return cycles(float64(s.Len) * m.Host.Copy)
	case coll.StepPack:
		return cycles(float64(s.Count*s.Len) * m.Host.Copy)
	case coll.StepReduce, coll.StepReduceRight:
		return cycles(float64(s.Len) * m.Host.Reduce)
	case coll.StepPublish, coll.StepAwait:
		return m.publish()
	}
	return 0
}
