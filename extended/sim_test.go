package extended

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A simulated network and its clock, between two ranks that each are a Conn with a minimal engine. Nothing here waits:
// an hour of silence is one step of a loop.

const latency = 20 * time.Microsecond

// fate is the fate of a copy of a packet: it may be delivered late, or with the bit numbered flip inverted, counted
// from 1.
type fate struct {
	delay time.Duration
	flip  int
}

var onTime = []fate{{}}

// swapped is the delay of a packet that arrives after the next one.
const swapped = time.Duration(-1)

// world is two ranks and the network between them.
type world struct {
	nodes [2]*node
	// fault decides the fate of the nth packet of a rank: one fate for each copy that arrives, none for a loss.
	fault func(from, nth int, packet []byte) []fate
	sent  [2]int
	held  [2][]byte
	queue events
	seq   int
	now   time.Duration
	log   io.Writer // nil: no transcript
	// fetch decides whether a received packet is advertised, and whether an advertised message can be fetched; nil:
	// never.
	fetch func() bool
	// rests reports whether a message that is waiting for a receive should rest. If nil, no message rests.
	rests func() bool
	// mtu is the maximum length of a datagram that is not fragmented, and link the limit of the first link; 0:
	// unlimited.
	mtu, link int
	// bad are the violations found.
	bad []error
}

// sixteen sets the eager limit for which the lengths in the tests are chosen.
func sixteen(cfg Config) Config {
	cfg.EagerLimit = cmp.Or(cfg.EagerLimit, 16384)
	return cfg
}

func newWorld(cfg Config) *world {
	cfg = sixteen(cfg)
	w := &world{fault: func(int, int, []byte) []fate { return onTime }}
	for i := range w.nodes {
		w.start(i, cfg)
	}
	return w
}

// start starts a rank, or its next process.
func (w *world) start(rank int, cfg Config) *node {
	cfg.Local, cfg.Remote = uint32(rank), uint32(1-rank)
	if cfg.CreditPool != nil {
		cfg.CreditPool = NewCreditPool(cfg.CreditPool.limit)
	}
	cfg.Seed = cfg.Seed*4 + uint64(rank)*2 + 1
	n := &node{w: w, rank: rank, cfg: cfg, conn: New(cfg), sends: map[ID]*simSend{}, inbound: map[Message]*simMessage{}}
	if old := w.nodes[rank]; old != nil {
		n.epochs = old.epochs + 1
		n.conn = New(func() Config { cfg.Seed += uint64(n.epochs) << 32; return cfg }())
	}
	n.conn.SetWakeSend(n.wakeSend)
	w.nodes[rank] = n
	return n
}

// run runs the world up to the given time. If no events are left, the clock stops at the last one.
func (w *world) run(until time.Duration) {
	for _, n := range w.nodes {
		n.flush()
	}
	for {
		at, who := until, -1
		for i, n := range w.nodes {
			if t, ok := n.conn.Deadline(); ok && t < at {
				at, who = t, i
			}
		}
		if len(w.queue) > 0 && w.queue[0].at <= at {
			w.deliver()
			continue
		}
		if who < 0 {
			return
		}
		w.now = max(w.now, at)
		w.nodes[who].tick()
	}
}

// wait runs the world for a time.
func (w *world) wait(d time.Duration) {
	until := w.now + d
	w.run(until)
	w.now = until
}

// deliver delivers all packets that arrive at a rank at the same time, as one batch.
func (w *world) deliver() {
	first := w.queue[0]
	w.now = max(w.now, first.at)
	n := w.nodes[first.to]
	for len(w.queue) > 0 && w.queue[0].at == first.at && w.queue[0].to == first.to {
		ev := heap.Pop(&w.queue).(event)
		if ev.call != nil {
			ev.call()
			continue
		}
		n.packet(ev.b)
	}
	n.flush()
}

// at schedules a call at a rank.
func (w *world) at(t time.Duration, rank int, call func()) {
	w.seq++
	heap.Push(&w.queue, event{at: t, seq: w.seq, to: rank, call: call})
}

// transmit puts a packet on the wire.
func (w *world) transmit(from int, b []byte) {
	nth := w.sent[from]
	w.sent[from]++
	fates := w.fault(from, nth, b)
	if w.log != nil {
		w.print("%d → %s%s", from, describe(b), describeFates(fates))
	}
	held := w.held[from]
	for _, f := range fates {
		if f.delay == swapped {
			w.held[from] = b
			continue
		}
		c := b
		if f.flip > 0 {
			c = bytes.Clone(b)
			c[(f.flip-1)/8%len(c)] ^= 1 << ((f.flip - 1) % 8)
		}
		w.arrive(from, c, f.delay)
	}
	if held != nil {
		w.held[from] = nil
		w.arrive(from, held, 0)
	}
}

func (w *world) arrive(from int, b []byte, delay time.Duration) {
	w.seq++
	heap.Push(&w.queue, event{at: w.now + latency + delay, seq: w.seq, to: 1 - from, b: b})
}

func (w *world) print(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%-10v %s\n", w.now, fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	w.bad = append(w.bad, fmt.Errorf("%v: %s", w.now, fmt.Sprintf(format, args...)))
}

// err returns the violations found.
func (w *world) err() error { return errors.Join(w.bad...) }

// describe prints a packet as in a transcript.
func describe(b []byte) string {
	h, payload, d := protocol.ParseExtended(b)
	if !d.OK() {
		return fmt.Sprintf("%d bytes: %v", len(b), d.Kind)
	}
	if h.Type != protocol.Ack {
		return h.Describe(len(payload))
	}
	a, _ := protocol.ParseAck(payload, nil)
	return h.String() + " " + a.String()
}

func describeFates(fates []fate) string {
	switch {
	case len(fates) == 0:
		return "  (lost)"
	case len(fates) > 1:
		return fmt.Sprintf("  (%d copies)", len(fates))
	case fates[0].delay == swapped:
		return "  (swapped)"
	case fates[0].delay > 0:
		return fmt.Sprintf("  (%v late)", fates[0].delay)
	case fates[0].flip > 0:
		return "  (corrupt)"
	}
	return ""
}

type event struct {
	at   time.Duration
	seq  int
	to   int
	b    []byte
	call func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
