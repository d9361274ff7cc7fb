package core

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// faults are the faults of a network, as probabilities per datagram unless noted.
type faults struct {
	loss, duplicate, corrupt float64
	// lose, if not nil, decides from the packet whether it is lost.
	lose func(from, to int, b []byte) bool
	// burst is the probability that a datagram, and up to 20 that follow on its path within a second, are
	// lost. repeat is the probability that a SEND_REQUEST is duplicated, up to 300 ms later.
	burst, repeat float64
	// most is the maximum total number of lost or duplicated datagrams; 0 means any number.
	most int
	// late is the probability of a delay of up to 300 ms, during which other datagrams overtake.
	late float64
	// cut is the probability of an outage of the path, or of both directions, for up to 3 s.
	cut float64
	// stall is the probability that the receiver is stopped for up to 400 ms before it reads a datagram, which then
	// waits in its socket together with the datagrams that follow.
	stall float64
	// hardware is a rank that is never stopped; 0 means none.
	hardware int
	// room is the number of datagrams that fit into a socket; 0 means any number.
	room int
	// jump is the probability that the receiver's clock jumps ahead by up to 5 s.
	jump float64
	// stream means that each pair has a connection. It loses nothing, but breaks with probability reset per packet.
	// Then all packets in transit are lost, and so are all packets sent before a new connection exists. The other
	// faults of datagrams do not apply.
	stream bool
	reset  float64
	// memory means that the network carries packets with short headers, too.
	memory bool
	// places means that payload may be placed in the receiver's buffer.
	places bool
	// slow is the probability that writing a DATA message takes up to 400 ms, while the core continues.
	slow float64
	// mtus are the possible MTUs of paths; nil means no limit. A path has one of them, and changes to another
	// with probability reroute per datagram. It silently loses longer datagrams unless they may be fragmented.
	mtus    []int
	reroute float64
	// halt is the probability that the receiver is stopped forever, while its connection stays open.
	halt float64
}

// datagram is a datagram in transit, or a packet of a stream.
type datagram struct {
	at       handshake.Instant
	from, to int
	bytes    []byte
	kind     RxKind
	// do, if not nil, is called at that time instead of a delivery.
	do func()
}

// burst is the remaining number of datagrams that a burst of losses drops, and the time at which it ends.
type burst struct {
	left  int
	until handshake.Instant
}

// of reports whether the datagram is between the two ranks.
func (d *datagram) of(a, b int) bool { return d.from == a && d.to == b || d.from == b && d.to == a }

// happens decides at random whether a fault affects the datagram that was sent last.
func (w *world) happens(p float64) bool { return p > 0 && w.sent <= w.calm && w.rng.Float64() < p }

// transmit sends a packet, or loses it.
func (w *world) transmit(from, to int, kind RxKind, b []byte) {
	fmt.Fprintln(w.transcript, w.now, from, to)
	w.transcript.Write(b)
	w.sent++
	path := [2]int{from, to}
	d := datagram{at: w.now, from: from, to: to, bytes: b, kind: kind}
	if w.net.stream {
		if w.happens(w.net.reset) {
			w.reset(from, to)
		}
		if w.now < w.cut[path] {
			w.traced("lost", d)
			return
		}
		w.traced("sent", d)
		d.at = w.inOrder(path)
		w.deliver(d)
		return
	}
	if w.happens(w.net.cut) {
		until := w.now + []time.Duration{20 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second}[w.rng.IntN(3)]
		w.cut[path] = until
		if w.rng.IntN(2) == 0 {
			w.cut[[2]int{to, from}] = until
		}
	}
	if w.happens(w.net.burst) {
		w.bad[path] = burst{1 + w.rng.IntN(20), w.now + time.Second}
	}
	bad := w.bad[path]
	loses := w.now < w.cut[path] || bad.left > 0 && w.now < bad.until || w.happens(w.net.loss) ||
		w.net.lose != nil && w.net.lose(from, to, b)
	bad.left--
	w.bad[path] = bad
	spare := w.net.most == 0 || w.faulty < w.net.most
	if loses && spare {
		w.faulty++
		w.traced("lost", d)
		return
	}
	w.traced("sent", d)
	if w.happens(w.net.corrupt) {
		b[w.rng.IntN(len(b))] ^= 1 << w.rng.IntN(8)
	}
	if w.happens(w.net.late) {
		d.at = w.now + latency(w) + time.Duration(w.rng.IntN(300))*time.Millisecond
	} else {
		d.at = w.inOrder(path)
	}
	w.deliver(d)
	if h, defect := protocol.CloudFPGA.Parse(b); w.happens(w.net.repeat) && spare && defect.OK() &&
		h.Type == protocol.SendRequest {
		w.faulty++
		w.traced("repeated", d)
		late := d
		late.at += time.Duration(w.rng.IntN(300_000)) * time.Microsecond
		w.deliver(late)
	}
	if w.happens(w.net.duplicate) {
		d.at += time.Duration(w.rng.IntN(20_000)) * time.Microsecond
		d.bytes = bytes.Clone(b)
		w.deliver(d)
	}
}

// carries reports whether a path carries a datagram of n bytes.
func (w *world) carries(path [2]int, n int) bool {
	if len(w.net.mtus) == 0 {
		return true
	}
	if w.mtu[path] == 0 || w.happens(w.net.reroute) {
		w.mtu[path] = w.net.mtus[w.rng.IntN(len(w.net.mtus))]
	}
	return n <= w.mtu[path]
}

// latency returns a random latency of a datagram.
func latency(w *world) time.Duration {
	return 10*time.Microsecond + time.Duration(w.rng.IntN(40))*time.Microsecond
}

// inOrder returns the arrival time of a datagram sent now.
func (w *world) inOrder(path [2]int) handshake.Instant {
	at := max(w.now+latency(w), w.last[path])
	w.last[path] = at
	return at
}

// reset breaks the connection of two ranks, which reconnect within 200 ms. Received packets that are unread
// may be lost as well.
func (w *world) reset(a, b int) {
	until := w.now + time.Duration(w.rng.IntN(200_000))*time.Microsecond
	w.wire = slices.DeleteFunc(w.wire, func(d datagram) bool { return d.of(a, b) })
	for _, path := range [][2]int{{a, b}, {b, a}} {
		if p := w.ports[path[1]]; w.rng.IntN(2) == 0 {
			p.socket = slices.DeleteFunc(p.socket, func(d datagram) bool { return d.of(a, b) })
		}
		w.cut[path] = until
		w.last[path] = until + latency(w)
		w.deliver(datagram{at: w.last[path], from: path[0], to: path[1], kind: RxConnected})
	}
}

func (w *world) traced(what string, d datagram) {
	if w.trace != nil {
		w.trace(what, d)
	}
}

// deliver schedules the arrival of a datagram.
func (w *world) deliver(d datagram) {
	i, _ := slices.BinarySearchFunc(w.wire, d, func(a, b datagram) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -1) // after datagrams with the same time
	})
	w.wire = slices.Insert(w.wire, i, d)
}

// arrive adds a datagram to its receiver's socket.
func (w *world) arrive(d datagram) {
	p := w.ports[d.to]
	if p.node != nil {
		p.node.datagram(d)
		return
	}
	if w.net.room > 0 && len(p.socket) >= w.net.room {
		w.traced("lost", d)
		return
	}
	d.at += p.ahead // of its clock
	if len(p.socket) == 0 {
		p.stall(w.net.stall)
	}
	if w.happens(w.net.jump) {
		p.ahead += time.Duration(w.rng.IntN(5000)) * time.Millisecond
	}
	if w.happens(w.net.halt) {
		p.stopped = Never
	}
	p.socket = append(p.socket, d)
}
