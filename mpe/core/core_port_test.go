package core

import (
	"bytes"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

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
	shape := p.w.cores[p.rank].peers.at(peer).cfg.Handshake.Shape
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
