package extended

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A bottleneck shared by flows, in simulated time: a queue in front of a line, losses after it, and a return path
// without loss or queue.

// overheadUDP is the overhead of UDP and IPv4 per datagram on the line, and overheadTCP the overhead of TCP with
// time stamps and IPv4 per segment, in bytes.
const (
	overheadUDP = 28
	overheadTCP = 52
)

// bottleneck is the shared line.
type bottleneck struct {
	rate   float64 // bytes per second
	trip   time.Duration
	room   int // capacity of the queue in bytes
	loss   float64
	dup    float64
	late   float64 // share of packets that arrive lateBy later
	lateBy time.Duration

	rng    *rand.Rand
	now    Instant
	freeAt Instant // time at which all queued packets are sent
	queue  simEvents
	seq    int

	// queued is the total waiting time of all packets, and count their number.
	queued  time.Duration
	count   int
	dropped int
}

type simEvent struct {
	at  Instant
	seq int
	do  func()
}

type simEvents []simEvent

func (q simEvents) Len() int { return len(q) }
func (q simEvents) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q simEvents) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simEvents) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simEvents) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func newBottleneck(megabits float64, trip time.Duration, products, loss float64) *bottleneck {
	b := &bottleneck{rate: megabits * 1e6 / 8, trip: trip, loss: loss, rng: rand.New(rand.NewPCG(5, 6))}
	b.room = int(b.rate * trip.Seconds() * products)
	return b
}

func (b *bottleneck) at(t Instant, do func()) {
	b.seq++
	heap.Push(&b.queue, simEvent{max(t, b.now), b.seq, do})
}

// run runs the bottleneck up to the given time.
func (b *bottleneck) run(until Instant) {
	for len(b.queue) > 0 && b.queue[0].at <= until {
		e := heap.Pop(&b.queue).(simEvent)
		b.now = e.at
		e.do()
	}
	b.now = until
}

// forth sends a packet of the given length through the queue.
func (b *bottleneck) forth(bytes int, arrive func()) {
	wait := max(b.freeAt-b.now, 0)
	if int(wait.Seconds()*b.rate)+bytes > max(b.room, 2*bytes) {
		b.dropped++
		return
	}
	b.queued += wait
	b.count++
	b.freeAt = b.now + wait + Instant(float64(bytes)/b.rate*1e9)
	if b.rng.Float64() < b.loss {
		return
	}
	at := b.freeAt + b.trip/2
	if b.late > 0 && b.rng.Float64() < b.late {
		at += b.lateBy
	}
	b.at(at, arrive)
	if b.dup > 0 && b.rng.Float64() < b.dup {
		b.at(at, arrive)
	}
}

// back sends an acknowledgement.
func (b *bottleneck) back(arrive func()) { b.at(b.now+b.trip/2, arrive) }

// flow is a Conn that always has data to send, and its peer.
type flow struct {
	b     *bottleneck
	conns [2]*Conn
	acts  []Action
	timer [2]Instant // time of the scheduled tick
	id    ID
	got   int64
	data  []byte
}

func newFlow(b *bottleneck, cfg Config, seed uint64) *flow {
	f := &flow{b: b, data: make([]byte, 1<<16)}
	for i := range f.conns {
		c := sixteen(cfg)
		c.Local, c.Remote, c.Seed = uint32(i), uint32(1-i), seed*2+uint64(i)+1
		f.conns[i] = New(c)
	}
	return f
}

// begin keeps the given number of messages of 1 MB in flight from the given time on.
func (f *flow) begin(at Instant, messages int) {
	f.b.at(at, func() {
		for range messages {
			f.post()
		}
		f.flush(0)
	})
}

func (f *flow) post() {
	f.id++
	f.acts = f.conns[0].Send(f.b.now, SendOp{ID: f.id, Length: 1_000_000}, f.acts)
}

func (f *flow) flush(i int) {
	c := f.conns[i]
	f.acts = c.Flush(f.b.now, f.acts)
	f.do(i)
	if at, ok := c.Deadline(); ok && at != f.timer[i] {
		f.timer[i] = at
		f.b.at(at, func() {
			if f.timer[i] != at {
				return
			}
			f.timer[i] = 0
			f.acts = c.Tick(f.b.now, f.acts)
			f.do(i)
			f.flush(i)
		})
	}
}

func (f *flow) do(i int) {
	for k := 0; k < len(f.acts); k++ {
		switch a := &f.acts[k]; a.Kind {
		case Transmit, TransmitAck:
			h, payload := a.Header, f.data[:a.Length]
			if a.Kind == TransmitAck {
				payload = append([]byte(nil), a.Payload...)
			}
			arrive := func() {
				to := f.conns[1-i]
				to.rxHeader = h
				f.acts = to.onValidPacket(f.b.now, payload, f.acts)
				f.do(1 - i)
				f.flush(1 - i)
			}
			if i == 0 {
				f.b.forth(protocol.ExtHeaderLen+len(payload)+overheadUDP, arrive)
			} else {
				f.b.back(arrive)
			}
		case Open:
			f.acts = f.conns[i].Accept(f.b.now, a.Message, a.Length, f.acts)
		case Copy:
			f.got += int64(len(a.Payload))
		case SendDone:
			f.post()
		}
	}
	f.acts = f.acts[:0]
}

func (f *flow) bytes() int64 { return f.got }
