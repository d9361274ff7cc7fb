package mpe

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// world runs the cores of some ranks in one goroutine, on simulated time and over a
// simulated network. A seed determines all that happens.
type world struct {
	rng   *rand.Rand
	now   handshake.Instant
	net   faults
	cores []*core
	ports []*port
	wire  []datagram                   // in the order of their times
	last  map[[2]int]handshake.Instant // when the last of a pair arrives: a path keeps the order
	cut   map[[2]int]handshake.Instant // until when nothing of a pair arrives
	jobs  []func()                     // users' functions that are to be called
	// sent counts datagrams, and from calm on none meets a fault.
	sent, calm int
	make       func(rank int) *core
	// transcript has every datagram with its time.
	transcript hash.Hash
	trace      func(what string, d datagram) // may be nil
}

// faults are what a network does, as probabilities of a datagram.
type faults struct {
	loss, duplicate, corrupt float64
	// late is that of a delay of up to 300 ms, which others overtake.
	late float64
	// cut is that of an outage of the path, or of both directions, for up to 3 s.
	cut float64
	// stall is that of the receiver being stopped for up to 400 ms when it is about to take
	// a datagram, which waits in its socket with those that follow.
	stall float64
	// hardware is a rank that is never stopped, unless it is 0.
	hardware int
	// room is how many datagrams a socket holds; 0 is any number.
	room int
}

// datagram is one in transit.
type datagram struct {
	at       handshake.Instant
	from, to int
	bytes    []byte
}

// port is a rank's end of the network, and the driver of its core.
type port struct {
	w    *world
	rank int
	// socket has what has arrived and was not taken, and stopped is until when its process
	// does not run. All that had arrived at known was taken.
	socket         []datagram
	stopped, known handshake.Instant
	// dead: it belongs to a core that has crashed.
	dead bool
}

// ready returns when the rank takes what is in its socket, or never.
func (p *port) ready() handshake.Instant {
	if len(p.socket) == 0 {
		return never
	}
	return max(p.stopped, p.w.now)
}

// due returns when the rank acts on its deadlines, or never.
func (p *port) due() handshake.Instant {
	due := p.w.cores[p.rank].due
	if due == never {
		return never
	}
	return max(due, p.stopped, p.w.now)
}

func (p *port) LocalAddr() netip.AddrPort    { return netip.AddrPort{} }
func (p *port) Reliable() bool               { return false }
func (p *port) Recv([]RxPacket) (int, error) { return 0, errors.ErrUnsupported }
func (p *port) Close() error                 { return nil }

func (p *port) SendHeader(peer int, header []byte) error {
	p.w.transmit(p.rank, peer, bytes.Clone(header))
	return nil
}

func (p *port) SendData(peer int, header, payload []byte, shape protocol.Shape) error {
	for first := true; first || len(payload) > 0; first = false {
		n := shape.MaxDatagram
		var b []byte
		if first {
			b, n = bytes.Clone(header), n-len(header)
		}
		n = min(n, len(payload))
		p.w.transmit(p.rank, peer, append(b, payload[:n]...))
		payload = payload[n:]
	}
	return nil
}

func (p *port) SendPackets(peer int, packets []Packet) (int, error) {
	for i := range packets {
		p.w.transmit(p.rank, peer, append(bytes.Clone(packets[i].Header[:]), packets[i].Payload...))
	}
	return len(packets), nil
}

func (p *port) sendHeader(l *handshakeLink, header []byte) error {
	return p.SendHeader(l.p.rank, header)
}

func (p *port) sendData(l *handshakeLink, _ handshake.ID, header, payload []byte) (handshake.Instant, bool, error) {
	return p.w.now, true, p.SendData(l.p.rank, header, payload, l.p.cfg.Handshake.Shape)
}

func (p *port) connected(*handshakeLink)   {}
func (p *port) place(Transport, Placement) {}
func (p *port) revoke()                    {}
func (p *port) random() uint64             { return p.w.rng.Uint64() }

func (p *port) compute(j collective.Job) {
	p.w.jobs = append(p.w.jobs, func() {
		err := j.Run()
		if !p.dead {
			p.w.event(p.rank, func(e *core) { e.computed(j, err) })
		}
	})
}

// newCores starts n cores that are each other's peers.
func newCores(t *testing.T, seed uint64, n int, net faults, peer func(local, remote int) Peer) *world {
	t.Helper()
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), net: net, transcript: sha256.New(),
		last: map[[2]int]handshake.Instant{}, cut: map[[2]int]handshake.Instant{},
		cores: make([]*core, n), ports: make([]*port, n), calm: math.MaxInt,
	}
	starts := uint64(0)
	w.make = func(rank int) *core {
		p := &port{w: w, rank: rank, known: w.now}
		cfg := Config{Rank: rank}
		starts++
		for remote := range n {
			peer := peer(rank, remote)
			peer.Transport = p
			if peer.Extended != nil {
				peer.Extended.Seed = starts<<32 + uint64(rank*n+remote+1)
			}
			cfg.Peers = append(cfg.Peers, peer)
		}
		e := new(core)
		if _, err := e.init(cfg, p); err != nil {
			t.Fatal(err)
		}
		for _, peer := range e.peers {
			if peer != nil {
				peer.known = &p.known
			}
		}
		if old := w.ports[rank]; old != nil {
			old.dead = true
		}
		w.cores[rank], w.ports[rank] = e, p
		return e
	}
	for rank := range n {
		w.make(rank)
	}
	return w
}

// transmit puts a datagram on the wire, or loses it.
func (w *world) transmit(from, to int, b []byte) {
	fmt.Fprintln(w.transcript, w.now, from, to)
	w.transcript.Write(b)
	w.sent++
	happens := func(p float64) bool { return p > 0 && w.sent <= w.calm && w.rng.Float64() < p }
	path := [2]int{from, to}
	if happens(w.net.cut) {
		until := w.now + []time.Duration{20 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second}[w.rng.IntN(3)]
		w.cut[path] = until
		if w.rng.IntN(2) == 0 {
			w.cut[[2]int{to, from}] = until
		}
	}
	if w.now < w.cut[path] || happens(w.net.loss) {
		w.traced("lost", datagram{w.now, from, to, b})
		return
	}
	w.traced("sent", datagram{w.now, from, to, b})
	if happens(w.net.corrupt) {
		b[w.rng.IntN(len(b))] ^= 1 << w.rng.IntN(8)
	}
	at := w.now + 10*time.Microsecond + time.Duration(w.rng.IntN(40))*time.Microsecond
	if happens(w.net.late) {
		at += time.Duration(w.rng.IntN(300)) * time.Millisecond
	} else {
		at = max(at, w.last[path])
		w.last[path] = at
	}
	w.deliver(datagram{at, from, to, b})
	if happens(w.net.duplicate) {
		w.deliver(datagram{at + time.Duration(w.rng.IntN(20_000))*time.Microsecond, from, to, bytes.Clone(b)})
	}
}

func (w *world) traced(what string, d datagram) {
	if w.trace != nil {
		w.trace(what, d)
	}
}

// deliver has a datagram arrive at its time.
func (w *world) deliver(d datagram) {
	i, _ := slices.BinarySearchFunc(w.wire, d, func(a, b datagram) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -1) // behind those of the same time
	})
	w.wire = slices.Insert(w.wire, i, d)
}

// event has a core take one event.
func (w *world) event(rank int, do func(e *core)) {
	e := w.cores[rank]
	e.begin(w.now)
	do(e)
	e.end()
}

// next returns when step has something to do, or never.
func (w *world) next() handshake.Instant {
	if len(w.jobs) > 0 {
		return w.now
	}
	at := never
	for _, p := range w.ports {
		at = min(at, p.ready(), p.due())
	}
	if len(w.wire) > 0 {
		at = min(at, w.wire[0].at)
	}
	return max(at, w.now)
}

// step does what is next, and reports false if there is nothing.
func (w *world) step() bool {
	if len(w.jobs) > 0 {
		i := w.rng.IntN(len(w.jobs))
		job := w.jobs[i]
		w.jobs = slices.Delete(w.jobs, i, i+1)
		job()
		return true
	}
	at := w.next()
	if at == never {
		return false
	}
	w.now = at
	if len(w.wire) > 0 && w.wire[0].at <= at {
		d := w.wire[0]
		w.wire = w.wire[1:]
		w.arrive(d)
		return true
	}
	// What is ready and what is due at the same time has no order.
	var events []func()
	for _, p := range w.ports {
		if p.ready() <= at {
			events = append(events, p.take)
		}
		if p.due() <= at {
			events = append(events, p.tick)
		}
	}
	events[w.rng.IntN(len(events))]()
	return true
}

// arrive puts a datagram into its receiver's socket.
func (w *world) arrive(d datagram) {
	p := w.ports[d.to]
	if w.net.room > 0 && len(p.socket) >= w.net.room {
		w.traced("lost", d)
		return
	}
	if len(p.socket) == 0 {
		p.stall(w.net.stall)
	}
	p.socket = append(p.socket, d)
}

// stall has the rank not run for a while, with some probability.
func (p *port) stall(probability float64) {
	hardware := p.rank > 0 && p.rank == p.w.net.hardware
	if probability > 0 && !hardware && p.w.rng.Float64() < probability {
		p.stopped = p.w.now + time.Duration(p.w.rng.IntN(400))*time.Millisecond
	}
}

// take has the core take some of what is in its socket.
func (p *port) take() {
	n := 1 + p.w.rng.IntN(len(p.socket))
	batch := make([]RxPacket, n)
	for i, d := range p.socket[:n] {
		batch[i] = RxPacket{Kind: RxDatagram, Peer: d.from, Bytes: d.bytes}
	}
	p.socket = p.socket[n:]
	if len(p.socket) > 0 {
		p.stall(3 * p.w.net.stall) // one that was stopped often is again
	}
	p.w.event(p.rank, func(e *core) { e.receiveBatch(p, batch) })
}

// tick has the core act on its deadlines.
func (p *port) tick() {
	p.known = p.w.now
	if len(p.socket) > 0 {
		p.known = p.socket[0].at - 1
	}
	p.w.event(p.rank, func(e *core) { e.tick() })
}

// start posts an operation.
func (w *world) start(t *testing.T, rank int, op Operation) *Request {
	t.Helper()
	r := w.cores[rank].request(&op)
	w.event(rank, func(e *core) {
		if err := e.startRequest(r, false); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// run does what there is to do until all requests have ended.
func (w *world) run(t *testing.T, requests []*Request) {
	t.Helper()
	for slices.ContainsFunc(requests, func(r *Request) bool { return !r.over() }) {
		if !w.step() {
			break
		}
		if w.now > time.Hour {
			t.Fatal("an hour has passed")
		}
	}
	for i, r := range requests {
		if !r.over() || r.err != nil {
			t.Errorf("request %d: over %v, %v", i, r.over(), r.err)
		}
	}
}

// software is a peer of the cloudfpga profile that repairs every loss, and extendedPeer
// one of the extended profile.
func software(_, _ int) Peer {
	return Peer{Handshake: handshake.Config{
		Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.SoftwarePeer()), MaxWords: 1 << 20,
	}}
}

func extendedPeer(_, _ int) Peer { return Peer{Extended: &extended.Config{MaxPayload: 1400}} }

// TestCoresOnSimulatedTime: cores exchange messages without a goroutine or a clock, with
// losses, and do the same again from the same seed.
func TestCoresOnSimulatedTime(t *testing.T) {
	for _, tt := range []struct {
		name string
		peer func(local, remote int) Peer
		net  faults
	}{
		{"cloudfpga", software, faults{}}, {"cloudfpga with losses", software, faults{loss: 0.05}},
		{"extended", extendedPeer, faults{}}, {"extended with losses", extendedPeer, faults{loss: 0.05}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			messages := func(seed uint64) []byte {
				w := newCores(t, seed, 3, tt.net, tt.peer)
				var requests []*Request
				var sent, got [][]byte
				for i := range 60 {
					from := w.rng.IntN(3)
					to := (from + 1 + w.rng.IntN(2)) % 3
					b := make([]byte, 4*(1+w.rng.IntN(2000)))
					binary.LittleEndian.PutUint32(b, uint32(i))
					into := make([]byte, len(b))
					sent, got = append(sent, b), append(got, into)
					requests = append(requests,
						w.start(t, from, Operation{Kind: OpSend, Peer: to, Buf: b}),
						w.start(t, to, Operation{Kind: OpRecv, Peer: from, Buf: into}))
				}
				w.run(t, requests)
				for i := range sent {
					if !bytes.Equal(sent[i], got[i]) {
						t.Errorf("message %d has changed", i)
					}
				}
				return w.transcript.Sum(nil)
			}
			once := messages(1)
			if again := messages(1); !bytes.Equal(once, again) {
				t.Error("the same seed does something else")
			}
			if other := messages(2); bytes.Equal(once, other) {
				t.Error("another seed does the same")
			}
		})
	}
}

// TestCallOnSimulatedTime: a reduction by a user's function, which the driver calls.
func TestCallOnSimulatedTime(t *testing.T) {
	const n = 4
	w := newCores(t, 1, n, faults{loss: 0.05}, extendedPeer)
	var requests []*Request
	results := make([][]byte, n)
	for rank := range n {
		results[rank] = make([]byte, 8)
		r, err := w.cores[rank].prepare(&collective.Operation{
			Call:    coll.Call{Collective: coll.Allreduce, Rank: rank, Ranks: n, Bytes: 8, Elem: 8},
			Members: []int{0, 1, 2, 3}, Comm: 1, Tag: 1, Type: op.Uint64,
			Send: binary.LittleEndian.AppendUint64(nil, uint64(rank+1)), Recv: results[rank],
			User: func(in, inout []byte) error {
				product := binary.LittleEndian.Uint64(in) * binary.LittleEndian.Uint64(inout)
				binary.LittleEndian.PutUint64(inout, product)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
		w.event(rank, func(e *core) {
			if err := e.startCall(r); err != nil {
				t.Fatal(err)
			}
		})
	}
	w.run(t, requests)
	for rank, b := range results {
		if got := binary.LittleEndian.Uint64(b); got != 24 {
			t.Errorf("rank %d has %d, not 24", rank, got)
		}
	}
}
