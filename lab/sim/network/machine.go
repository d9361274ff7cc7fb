package network

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// machine is the ranks of a cluster in a call.
type machine struct {
	Cluster
	algorithm, barrier *coll.Algorithm
	clock              sim.Clock
	ranks              []rank
	hosts              []host
	switches           []port
	free               *message
}

// port is an interface: when it is free to send, and to receive.
type port struct{ out, in sim.Cycle }

// host is the interface of its ranks, and the cores that they share if there are fewer of them.
type host struct {
	port
	cores []core
}

// kind is what a message is.
type kind uint8

const (
	// kindEager has data that does not wait for its receive.
	kindEager kind = iota
	// kindRequest announces data, kindClear asks for it, and kindAck says that it has come.
	kindRequest
	kindClear
	kindData
	kindAck
	// kindFlowRequest and kindFlowClear synchronise a flow, of which kindPiece is a part.
	kindFlowRequest
	kindFlowClear
	kindPiece
	// kindNotice is that something was published.
	kindNotice
)

// message is under way between two ranks.
type message struct {
	machine  *machine
	kind     kind
	from, to *rank
	// bytes is what it carries, and length the data that it is about.
	bytes, length int
	// send and recv are the numbers of the steps at both ends.
	send, recv int
	// first and last are when its first burst and its last byte have come so far.
	first, last sim.Cycle
	// next is what happens to it next; happens calls it.
	next    func(*message)
	happens func()
	chain   *message
}

// message returns one that is in no use.
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

// at schedules what happens to the message at a time.
func (p *message) at(t sim.Cycle, next func(*message)) {
	p.next = next
	p.machine.clock.After(t-p.machine.clock.Now(), p.happens)
}

// link is that between both ranks.
func (p *message) link() *Link {
	if p.from.host == p.to.host && !p.machine.Loopback {
		return &p.machine.Memory
	}
	return &p.machine.Network
}

// burst is how many bytes come before a receiver can begin with a message.
const burst = 16 << 10

// processor is the processor time of n bytes at an end.
func (l *Link) processor(n int) sim.Cycle { return cycles(l.Overhead + float64(n)*l.OverheadByte) }

// begin has the sender's processor begin at a time, which it ends after a processor time.
func (p *message) begin(t, cost sim.Cycle) {
	p.last = t + cost
	p.at(t+p.link().processor(min(p.bytes, burst)), (*message).depart)
}

// times returns the time of the message's first burst, and of all its bytes.
func (p *message) times(byte float64) (first, all sim.Cycle) {
	return cycles(float64(min(p.bytes, burst)) * byte), cycles(float64(p.bytes) * byte)
}

// depart has the interfaces send the message as soon as they are free.
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

// enter has the receiver's interface take the message.
func (p *message) enter() {
	m, l := p.machine, p.link()
	first, all := p.times(l.GapByte)
	in := &m.hosts[p.to.host].in
	begin := max(m.clock.Now(), *in)
	*in = begin + max(cycles(l.Gap), all)
	p.last = max(p.last, begin+all)
	p.at(max(p.first, begin+first), (*message).arrive)
}

// arrive has the receiver's processor take the message. It ends when the last burst has come.
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

// stepCost is the processor time of a step without a message.
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
