package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// world runs the cores of some ranks in one goroutine, in simulated time and over a simulated network. The
// seed determines everything that happens.
type world struct {
	rng   *rand.Rand
	now   handshake.Instant
	net   faults
	cores []*Core
	ports []*port
	wire  []datagram                   // in order of time
	last  map[[2]int]handshake.Instant // last arrival between a pair: a path keeps the order
	cut   map[[2]int]handshake.Instant // end of an outage between a pair
	bad   map[[2]int]burst             // bursts of losses between a pair
	mtu   map[[2]int]int               // one of faults.mtus
	// programs holds the programs that block, including users' functions. current is the running program, if any.
	programs []*blocking
	current  *blocking
	// sent counts all datagrams, and faulty counts lost and duplicated datagrams. From datagram number calm on,
	// there are no faults.
	sent, faulty, calm int
	make               func(rank int) *Core
	// transcript hashes every datagram with its time.
	transcript hash.Hash
	trace      func(what string, d datagram) // may be nil
}

// port is a rank's end of the network, and the driver of its core.
type port struct {
	w    *world
	rank int
	// socket holds received datagrams that are unread. stopped is the time until which the rank's process does not
	// run. All datagrams received before known have been read.
	socket         []datagram
	stopped, known handshake.Instant
	// ahead is the offset of the rank's clock. All times of the core are times of that clock, and so is known.
	ahead time.Duration
	// dead means that the port belongs to a core that has crashed.
	dead bool
	// node is the model of a deployed node in place of a core, or nil.
	node *deployed
	// report is called when other ranks wait for a report; it may be nil.
	report func()
	// place and revoke, if not nil, implement Effects.Place and Effects.Revoke.
	place  func(Placement)
	revoke func(peer int)
	// writers holds, by peer, the packets queued behind a long write, or nil if there is no such write.
	writers map[int][]delayed
}

// ready returns the time at which the rank reads its socket, or Never.
func (p *port) ready() handshake.Instant {
	if len(p.socket) == 0 {
		return Never
	}
	return max(p.stopped, p.w.now)
}

// due returns the time at which the rank acts on its deadlines, or Never.
func (p *port) due() handshake.Instant {
	if p.node != nil {
		return p.node.due()
	}
	due := p.w.cores[p.rank].tickDue
	if due == Never || p.stopped == Never {
		return Never
	}
	return max(due-p.ahead, p.stopped, p.w.now)
}

// SendHeader implements Effects.
func (p *port) SendHeader(peer int, header []byte) error {
	if p.writers[peer] != nil {
		p.writers[peer] = append(p.writers[peer], delayed{header: bytes.Clone(header)})
		return nil
	}
	return p.sendHeader(peer, header)
}

func (p *port) sendHeader(peer int, header []byte) error {
	p.w.transmit(p.rank, peer, p.kind(RxHeader), bytes.Clone(header))
	return nil
}

// kind returns the kind with which a handshake packet arrives.
func (p *port) kind(stream RxKind) RxKind {
	if p.w.net.stream {
		return stream
	}
	return RxDatagram
}

// SendData implements Effects.
func (p *port) SendData(peer int, id handshake.ID, header, payload []byte) (handshake.Instant, bool, error) {
	writing := p.writers[peer] != nil
	if !writing && !p.w.happens(p.w.net.slow) {
		return p.w.now + p.ahead, true, p.sendData(peer, header, payload)
	}
	p.writers[peer] = append(p.writers[peer],
		delayed{header: bytes.Clone(header), payload: bytes.Clone(payload), data: id})
	if !writing {
		p.write(peer)
	}
	return 0, false, nil
}

func (p *port) sendData(peer int, header, payload []byte) error {
	shape := p.w.cores[p.rank].peers[peer].cfg.Handshake.Shape
	if p.w.net.stream {
		p.w.transmit(p.rank, peer, RxHeader, bytes.Clone(header))
		for len(payload) > 0 {
			n := min(len(payload), 1+p.w.rng.IntN(4000))
			p.w.transmit(p.rank, peer, RxPayload, bytes.Clone(payload[:n]))
			payload = payload[n:]
		}
		return nil
	}
	for first := true; first || len(payload) > 0; first = false {
		n := shape.MaxDatagram
		var b []byte
		if first {
			b, n = bytes.Clone(header), n-len(header)
		}
		n = min(n, len(payload))
		p.w.transmit(p.rank, peer, RxDatagram, append(b, payload[:n]...))
		payload = payload[n:]
	}
	return nil
}

// SendPackets implements Effects.
func (p *port) SendPackets(peer int, packets []Packet) (tooLong bool, err error) {
	for i := range packets {
		b := append(bytes.Clone(packets[i].Header[:]), packets[i].Payload...)
		if !p.w.carries([2]int{p.rank, peer}, len(b)) && !packets[i].Fragment {
			p.w.traced("too long", datagram{at: p.w.now, from: p.rank, to: peer, bytes: b})
			continue
		}
		p.w.transmit(p.rank, peer, RxDatagram, b)
	}
	return false, nil
}

// LongestDatagram returns the MTU of the first link, or the path MTU if it is known.
func (p *port) LongestDatagram(peer int) int {
	if n := p.w.mtu[[2]int{p.rank, peer}]; n > 0 && p.w.rng.IntN(2) == 0 {
		return n
	}
	return slices.Max(p.w.net.mtus)
}

// network returns the Network of the port.
func (p *port) network() Network {
	net := p.w.net
	n := Network{Reliable: net.stream, Datagrams: true, Places: net.places}
	if net.memory {
		n.Memory = p
	}
	return n
}

// SendShort implements Memory. The contents of the memory are lost when a link breaks.
func (p *port) SendShort(peer int, h *protocol.ShortHeader, payload []byte) bool {
	if p.w.rng.IntN(20) == 0 { // the memory is full
		return false
	}
	var b [protocol.ShortHeaderLen]byte
	h.Put(&b)
	p.w.transmit(p.rank, peer, RxShort, append(b[:], payload...))
	return true
}

// delayed is a packet queued behind a long write to the same peer.
type delayed struct {
	header, payload []byte
	data            handshake.ID // or 0
}

// write sends the queue of a peer until it is empty. Some time passes before and after the packets of a message.
func (p *port) write(peer int) {
	behind := p.writers[peer]
	if len(behind) == 0 || p.dead {
		p.writers[peer] = nil
		return
	}
	out := behind[0]
	p.writers[peer] = behind[1:]
	after := func(do func()) {
		at := p.w.now + time.Duration(p.w.rng.IntN(200))*time.Millisecond
		p.w.deliver(datagram{at: at, from: p.rank, to: p.rank, do: func() {
			if !p.dead {
				do()
			}
		}})
	}
	if out.data == 0 {
		_ = p.sendHeader(peer, out.header)
		p.write(peer)
		return
	}
	after(func() {
		_ = p.sendData(peer, out.header, out.payload)
		after(func() {
			p.w.event(p.rank, func(e *Core) { e.DataSent(peer, out.data, nil) })
			p.write(peer)
		})
	})
}

// DropQueued implements Effects.
func (p *port) DropQueued(peer int) {
	if p.writers[peer] != nil {
		p.writers[peer] = p.writers[peer][:0]
	}
}

// Place and Revoke implement Effects.
func (p *port) Place(at Placement) {
	if p.place != nil {
		p.place(at)
	}
}

func (p *port) Revoke(peer int) {
	if p.revoke != nil {
		p.revoke(peer)
	}
}

// A port ignores the following effects.

func (p *port) LongPayload(int) int          { return 0 }
func (p *port) Fetch(*RxPacket, []byte) bool { return false }
func (p *port) Get(int, uint64, []byte) bool { return false }
func (p *port) Invalidate(int, uint64)       {}

// dealWith processes an outcome, and runs its jobs as programs.
func (p *port) dealWith(out *Outcome) {
	for _, wake := range out.Wake {
		wake()
	}
	for _, j := range out.Jobs {
		p.w.spawn(nil, func() {
			err := j.Run()
			if !p.dead {
				p.w.event(p.rank, func(e *Core) { e.JobDone(j, err) })
			}
		})
	}
	report := out.Report && p.report != nil
	out.Completed = out.Completed[:0]
	out.Clear()
	if report {
		p.report()
	}
}

// Random implements Effects.
func (p *port) Random() uint64 { return p.w.rng.Uint64() }

// NewRequest implements Effects.
func (p *port) NewRequest() *Request { return new(Request) }

// Release implements Effects. Tests may read a request after its end.
func (p *port) Release(*Request) {}

// newCores starts n cores that are each other's peers. A rank may also be a model of a deployed node.
func newCores(t *testing.T, seed uint64, n int, net faults, peer func(local, remote int) Peer,
	nodes ...newNode) *world {
	t.Helper()
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), net: net, transcript: sha256.New(),
		last: map[[2]int]handshake.Instant{}, cut: map[[2]int]handshake.Instant{}, bad: map[[2]int]burst{},
		mtu:   map[[2]int]int{},
		cores: make([]*Core, n), ports: make([]*port, n), calm: math.MaxInt,
	}
	starts := uint64(0)
	w.make = func(rank int) *Core {
		p := &port{w: w, rank: rank, known: w.now, writers: map[int][]delayed{}}
		if rank < len(nodes) && nodes[rank] != nil {
			others := slices.Delete(members(n), rank, rank+1)
			p.node = nodes[rank](w, rank, others)
			w.ports[rank] = p
			return nil
		}
		cfg := Config{Rank: rank}
		starts++
		var room *extended.CreditPool
		for remote := range n {
			peer := peer(rank, remote)
			peer.Network = p.network()
			if peer.Extended != nil {
				peer.Extended.Seed = starts<<32 + uint64(rank*n+remote+1)
				if x := peer.Extended; x.CreditPool != nil { // one for all peers of the rank
					if room == nil {
						room = x.CreditPool
					}
					x.CreditPool = room
				}
			}
			cfg.Peers = append(cfg.Peers, peer)
		}
		e := New(cfg, p)
		if seed/2%2 == 0 { // every message that waits for a receive rests
			e.matching.restThreshold = -1
		}
		if old := w.ports[rank]; old != nil {
			old.dead = true
			for remote := range n {
				if net.stream && remote != rank {
					w.reset(rank, remote)
				}
			}
		}
		w.cores[rank], w.ports[rank] = e, p
		return e
	}
	for rank := range n {
		w.make(rank)
	}
	return w
}

// newNode creates the model of a deployed node. A nil newNode stands for a core.
type newNode func(w *world, rank int, peers []int) *deployed

// members returns the ranks of a cluster.
func members(n int) []int {
	all := make([]int, n)
	for rank := range all {
		all[rank] = rank
	}
	return all
}

// event runs one event of a core.
func (w *world) event(rank int, do func(e *Core)) {
	e := w.cores[rank]
	e.Begin(w.now + w.ports[rank].ahead)
	do(e)
	w.ports[rank].dealWith(e.End())
}

// next returns the time of the next step, or Never.
func (w *world) next() handshake.Instant {
	at := Never
	for _, p := range w.ports {
		at = min(at, p.ready(), p.due())
	}
	for _, b := range w.programs {
		if b.runnable(w.now) {
			return w.now
		}
		at = min(at, b.until)
	}
	if len(w.wire) > 0 {
		at = min(at, w.wire[0].at)
	}
	return max(at, w.now)
}

// step runs the next event, and reports false if there is no event.
func (w *world) step() bool {
	at := w.next()
	if at == Never {
		return false
	}
	w.now = at
	if len(w.wire) > 0 && w.wire[0].at <= at {
		d := w.wire[0]
		if w.wire = w.wire[1:]; d.do != nil {
			d.do()
		} else {
			w.arrive(d)
		}
		return true
	}
	// Events at the same time have no order.
	var events []func()
	for _, p := range w.ports {
		if p.ready() <= at {
			events = append(events, p.take)
		}
		if p.due() <= at {
			events = append(events, p.tick)
		}
	}
	for _, b := range w.programs {
		if b.runnable(at) {
			events = append(events, func() { b.proceed(w) })
		}
	}
	events[w.rng.IntN(len(events))]()
	return true
}

// stall stops the rank for a while, with some probability.
func (p *port) stall(probability float64) {
	hardware := p.rank > 0 && p.rank == p.w.net.hardware
	if probability > 0 && !hardware && p.stopped != Never && p.w.rng.Float64() < probability {
		p.stopped = p.w.now + time.Duration(p.w.rng.IntN(400))*time.Millisecond
	}
}

// take passes some packets of the socket to the core.
func (p *port) take() {
	n := 1 + p.w.rng.IntN(len(p.socket))
	joins := p.w.rng.IntN(2) == 0
	var batch []RxPacket
	for _, d := range p.socket[:n] {
		if last := len(batch) - 1; !joins || last < 0 || !batch[last].join(&d) {
			batch = append(batch, RxPacket{Kind: d.kind, Peer: d.from, Bytes: d.bytes})
		}
	}
	p.socket = p.socket[n:]
	if len(p.socket) > 0 {
		p.stall(3 * p.w.net.stall) // a rank that was stopped is likely to be stopped again
	}
	e := p.w.cores[p.rank]
	if len(e.pending.touched) == 0 && p.w.now+p.ahead <= e.now+time.Millisecond { // as in Engine.receiveBatch
		batch = e.ReceiveShorts(0, batch)
	}
	if len(batch) > 0 || e.NeedsFlush() {
		p.w.event(p.rank, func(e *Core) { e.ReceiveBatch(0, batch) })
	}
}

// join appends a datagram to the datagrams before it, like a system that reads several datagrams of equal length at
// once, of which the last may be shorter. It reports false if that is not possible.
func (a *RxPacket) join(d *datagram) bool {
	each := a.DatagramLen
	if each == 0 {
		each = len(a.Bytes)
	}
	if a.Kind != RxDatagram || d.kind != RxDatagram || a.Peer != d.from || len(d.bytes) == 0 || len(d.bytes) > each ||
		len(a.Bytes)%each > 0 {
		return false
	}
	a.Bytes, a.DatagramLen = append(bytes.Clone(a.Bytes), d.bytes...), each
	return true
}

// tick makes the core act on its deadlines.
func (p *port) tick() {
	if p.node != nil {
		p.node.tick()
		return
	}
	p.known = p.w.now + p.ahead
	if len(p.socket) > 0 {
		p.known = p.socket[0].at - 1
	}
	p.w.event(p.rank, func(e *Core) { e.Tick([]handshake.Instant{p.known}) })
}

// start posts an operation.
func (w *world) start(t *testing.T, rank int, op Operation) *Request {
	t.Helper()
	r := new(Request)
	w.cores[rank].Init(r, &op)
	w.event(rank, func(e *Core) {
		if err := e.startRequest(r, false); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// call makes a collective call.
func (w *world) call(t *testing.T, rank int, o *collective.Operation) *Request {
	t.Helper()
	r := new(Request)
	if err := w.cores[rank].Prepare(r, new(collective.Execution), o); err != nil {
		t.Fatal(err)
	}
	w.event(rank, func(e *Core) {
		if err := e.StartCall(r); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// until runs all events up to a time.
func (w *world) until(at handshake.Instant) {
	for w.next() < at && w.step() {
	}
	w.now = at
}

// run runs events until all requests are done.
func (w *world) run(t *testing.T, requests []*Request) {
	t.Helper()
	for slices.ContainsFunc(requests, func(r *Request) bool { return !r.Done }) {
		if !w.step() {
			break
		}
		if w.now > time.Hour {
			t.Fatal("an hour has passed")
		}
	}
	for i, r := range requests {
		if !r.Done || r.Err != nil {
			t.Errorf("request %d: over %v, %v", i, r.Done, r.Err)
		}
	}
}

// software is a peer of the cloudfpga profile that repairs every loss. extendedPeer is a peer of the extended
// profile.
func software(_, _ int) Peer {
	rules := handshake.SoftwarePeer()
	return Peer{Handshake: handshake.Config{
		Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
	}}
}

func extendedPeer(_, _ int) Peer {
	return Peer{Extended: &extended.Config{MaxPayload: 1400}}
}

// boundedPeer accepts two messages before their receives are posted. From all peers of a rank together, it accepts
// at most 120, if that is less.
func boundedPeer(_, _ int) Peer {
	return Peer{Extended: &extended.Config{MaxPayload: 1400, Messages: 2, CreditPool: extended.NewCreditPool(120)}}
}

// discoveringPeer discovers the path MTU.
func discoveringPeer(_, _ int) Peer {
	return Peer{Extended: &extended.Config{MaxPayload: 65424, Discover: true}}
}

// TestCoresOnSimulatedTime checks that cores exchange messages without a goroutine or a clock, despite
// losses, and that the same seed leads to the same transcript.
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
			once := messages(3)
			if again := messages(3); !bytes.Equal(once, again) {
				t.Error("the same seed does something else")
			}
			if other := messages(23); bytes.Equal(once, other) {
				t.Error("another seed does the same")
			}
		})
	}
}

// TestStoppedOnSimulatedTime checks that a rank that was stopped processes received packets before its
// timeouts expire.
func TestStoppedOnSimulatedTime(t *testing.T) {
	for name, peer := range map[string]func(local, remote int) Peer{"cloudfpga": software, "extended": extendedPeer} {
		for seed := range uint64(10) { // events at the same time have a random order
			w := newCores(t, seed, 2, faults{}, peer)
			for range 2 {
				w.run(t, []*Request{
					w.start(t, 0, Operation{Kind: OpSend, Peer: 1, Buf: make([]byte, 1000)}),
					w.start(t, 1, Operation{Kind: OpRecv, Peer: 0, Buf: make([]byte, 1000)}),
				})
				w.ports[0].stopped = w.now + time.Second
			}
			for w.now < 2*time.Second && w.step() {
			}
			if p := w.cores[0].peers[1]; p.events[state.EventTimedOut]+p.events[state.EventRetransmitted] > 0 {
				t.Errorf("%s, seed %d: something was retransmitted", name, seed)
			}
		}
	}
}
