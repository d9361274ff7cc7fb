package handshake_test

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A simulated network and its clock. Nothing here waits: an hour of silence is one step of a loop.

// latency is the transit time of a datagram in the simulation.
const latency = 20 * time.Microsecond

// endpoint is a simulated rank: a Pair, or a model of a deployed node.
type endpoint interface {
	// start begins the queued operations that can begin.
	start(now time.Duration)
	// datagram handles a datagram.
	datagram(now time.Duration, b []byte)
	// tick handles timeouts; next returns the time of the next one.
	tick(now time.Duration)
	next() (time.Duration, bool)
	// out returns the datagrams to be sent, and removes them.
	out() [][]byte
}

// fault decides the fate of a datagram: the delays, beyond the latency, after which copies of it arrive. None means a
// loss.
type fault func(from, nth int, b []byte) []time.Duration

var onTime = []time.Duration{0}

// world is two endpoints and the network between them.
type world struct {
	ends  [2]endpoint
	fault fault
	sent  [2]int
	held  [2][]byte // a datagram that waits to be swapped with the next one
	log   []sentAt
	quiet bool // keep no log
	queue events
	seq   int
	now   time.Duration

	stall stall
	got   [2]int           // datagrams handled
	until [2]time.Duration // when a stalled endpoint resumes
}

// stall stops one side for a time when it is about to handle its nth datagram. Its process does not run, and datagrams
// wait in its socket.
type stall struct {
	side, nth int
	lasts     time.Duration
}

// staller is an endpoint that models its own stalls.
type staller interface {
	stall(now, d time.Duration)
}

// sentAt is a datagram in the transcript.
type sentAt struct {
	at   time.Duration
	from int
	b    []byte
}

func (s sentAt) String() string { return fmt.Sprintf("%12v %d→ %s", s.at, s.from, describe(s.b)) }

func newWorld(a, b endpoint, f fault) *world {
	if f == nil {
		f = func(int, int, []byte) []time.Duration { return onTime }
	}
	return &world{ends: [2]endpoint{a, b}, fault: f}
}

// run runs the world up to the given time.
func (w *world) run(until time.Duration) {
	for i, e := range w.ends {
		e.start(w.now)
		w.flush(i)
	}
	for {
		at, who, timeout := until, -1, false
		for i, e := range w.ends {
			if t, ok := e.next(); ok && max(t, w.until[i]) < at {
				at, who, timeout = max(t, w.until[i]), i, true
			}
		}
		if len(w.queue) > 0 && w.queue[0].at <= at {
			ev := heap.Pop(&w.queue).(event)
			w.now = max(w.now, ev.at)
			if w.stall.lasts > 0 && w.stall.side == ev.to && w.stall.nth == w.got[ev.to] {
				if s, ok := w.ends[ev.to].(staller); ok {
					s.stall(w.now, w.stall.lasts)
				} else {
					w.until[ev.to] = w.now + w.stall.lasts
				}
				w.stall.lasts = 0
			}
			if w.now < w.until[ev.to] {
				ev.at = w.until[ev.to]
				heap.Push(&w.queue, ev)
				continue
			}
			w.got[ev.to]++
			w.ends[ev.to].datagram(w.now, ev.b)
			w.ends[ev.to].start(w.now)
			w.flush(ev.to)
			continue
		}
		if !timeout {
			w.now = until
			return
		}
		w.now = max(w.now, at)
		w.ends[who].tick(w.now)
		w.ends[who].start(w.now)
		w.flush(who)
	}
}

// flush sends the pending datagrams of an endpoint.
func (w *world) flush(from int) {
	for _, b := range w.ends[from].out() {
		nth := w.sent[from]
		w.sent[from]++
		if !w.quiet {
			w.log = append(w.log, sentAt{w.now, from, b})
		}
		for _, d := range w.fault(from, nth, b) {
			if d == swapped {
				w.held[from] = b
				continue
			}
			w.deliver(from, b, d)
			if h := w.held[from]; h != nil {
				w.held[from] = nil
				w.deliver(from, h, d)
			}
		}
	}
}

func (w *world) deliver(from int, b []byte, d time.Duration) {
	w.seq++
	heap.Push(&w.queue, event{at: w.now + latency + d, seq: w.seq, to: 1 - from, b: b})
}

// swapped is the fate of a datagram that arrives after the one sent next.
const swapped = time.Duration(-1)

func describe(b []byte) string {
	if h, d := protocol.CloudFPGA.Parse(b); d.OK() {
		return fmt.Sprintf("%v (%d bytes)", h, len(b))
	}
	return fmt.Sprintf("%d bytes of payload", len(b))
}

type event struct {
	at  time.Duration
	seq int
	to  int
	b   []byte
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

// result is the result of an operation.
type result struct {
	data  []byte
	words uint32
	err   error
	done  bool
	ph    handshake.Phases
}

// rank is an endpoint that uses a Pair. It drives the Pair as package mpe does in a live rank, but without goroutines.
type rank struct {
	pair  *handshake.Pair
	cfg   handshake.Config
	sends []*simOp
	recvs []*simOp
	sent  int // operations handed to the pair so far
	recvd int
	acts  []handshake.Action
	wire  [][]byte
	drops map[handshake.Reason]int
	notes map[handshake.Event]int
	noted func(handshake.Event) // if not nil, called for each note
	ends  []error               // the dead ends of the peer
}

type simOp struct {
	result
	after  time.Duration // earliest time of the call
	behind *simOp        // an operation that must be done first
	buf    []byte
	dt     protocol.Datatype
	any    bool
}

func (op *simOp) unblocked() bool { return op.behind == nil || op.behind.done }

// ready reports whether the program can make the call.
func (op *simOp) ready(now time.Duration) bool { return op.unblocked() && op.after <= now }

func newRank(cfg handshake.Config) *rank {
	if cfg.MaxWords == 0 {
		cfg.MaxWords = 1 << 24
	}
	if cfg.Shape.MaxDatagram == 0 {
		cfg.Shape = protocol.CPUShape()
	}
	return &rank{
		pair: handshake.New(cfg), cfg: cfg,
		drops: map[handshake.Reason]int{}, notes: map[handshake.Event]int{},
	}
}

func (r *rank) postSend(data []byte) *simOp {
	op := &simOp{buf: data}
	r.sends = append(r.sends, op)
	return op
}

func (r *rank) postRecv(words int) *simOp {
	op := &simOp{buf: make([]byte, words*4)}
	r.recvs = append(r.recvs, op)
	return op
}

func (r *rank) start(now time.Duration) {
	for r.sent < len(r.sends) && r.pair.SendIdle() && r.sends[r.sent].ready(now) {
		op := r.sends[r.sent]
		var err error
		r.acts, err = r.pair.Send(now,
			handshake.SendOp{ID: handshake.ID(r.sent), Words: uint32(len(op.buf) / 4), Datatype: op.dt}, r.acts)
		r.sent++
		if err != nil {
			op.err, op.done = err, true
		}
		r.do(now)
	}
	for r.recvd < len(r.recvs) && r.pair.RecvIdle() && r.recvs[r.recvd].ready(now) {
		op := r.recvs[r.recvd]
		var err error
		r.acts, err = r.pair.Recv(now, handshake.RecvOp{
			ID: handshake.ID(r.recvd), Words: uint32(len(op.buf) / 4), Datatype: op.dt, Any: op.any,
		}, r.acts)
		r.recvd++
		if err != nil {
			op.err, op.done = err, true
		}
		r.do(now)
	}
}

func (r *rank) datagram(now time.Duration, b []byte) {
	r.acts = r.pair.Datagram(now, b, r.acts)
	r.do(now)
}

func (r *rank) tick(now time.Duration) {
	r.acts = r.pair.Tick(now, r.acts)
	r.do(now)
	r.start(now)
}

func (r *rank) next() (time.Duration, bool) {
	at, ok := r.pair.Deadline()
	later := func(ops []*simOp, i int, idle bool) {
		if i < len(ops) && idle && ops[i].unblocked() && (!ok || ops[i].after < at) {
			at, ok = ops[i].after, true
		}
	}
	later(r.sends, r.sent, r.pair.SendIdle())
	later(r.recvs, r.recvd, r.pair.RecvIdle())
	return at, ok
}

func (r *rank) out() [][]byte {
	w := r.wire
	r.wire = nil
	return w
}

func (r *rank) do(now time.Duration) {
	for i := 0; i < len(r.acts); i++ {
		switch a := r.acts[i]; a.Kind {
		case handshake.Transmit:
			r.wire = append(r.wire, r.cfg.Profile.Append(nil, a.Header))
		case handshake.TransmitData:
			r.wire = append(r.wire, cut(r.cfg.Profile, a.Header, r.sends[a.ID].buf, r.cfg.Shape)...)
			r.pair.DataSent(now)
		case handshake.Copy:
			copy(r.recvs[a.ID].buf[a.Offset:], a.Payload)
		case handshake.SendDone:
			r.sends[a.ID].result = result{words: a.Words, err: a.Err, done: true, ph: a.Phases}
		case handshake.RecvDone:
			op := r.recvs[a.ID]
			op.result = result{data: op.buf[:min(len(op.buf), int(a.Words)*4)], words: a.Words, err: a.Err, done: true,
				ph: a.Phases}
		case handshake.Repost:
			r.recvd = int(a.ID)
		case handshake.Drop:
			r.drops[a.Reason]++
		case handshake.Note:
			r.notes[a.Event]++
			if r.noted != nil {
				r.noted(a.Event)
			}
		case handshake.DeadEnd:
			r.ends = append(r.ends, a.Err)
		}
	}
	r.acts = r.acts[:0]
}

// cut fragments a message into the datagrams of a shape.
func cut(profile protocol.Profile, h protocol.Header, payload []byte, shape protocol.Shape) [][]byte {
	total := shape.PayloadBytes(h.Size)
	padded := append(slices.Clone(payload), make([]byte, total-int64(len(payload)))...)
	var out [][]byte
	for off := int64(0); off < total || off == 0; {
		n := shape.PayloadAt(off, total)
		var b []byte
		if off == 0 {
			b = profile.Append(b, h)
		}
		out = append(out, append(b, padded[off:off+n]...))
		off += n
		if total == 0 {
			break
		}
	}
	return out
}

// pattern returns n words that differ for every message and position, so that every mix-up is detected.
func pattern(n int, seed uint32) []byte {
	b := make([]byte, n*4)
	for i := range n {
		binary.LittleEndian.PutUint32(b[i*4:], seed*0x9e3779b9+uint32(i)*0x85ebca6b)
	}
	return b
}
