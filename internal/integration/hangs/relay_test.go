package hangs_test

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// direction is the direction of a datagram from the host's point of view.
type direction uint8

const (
	out direction = iota
	in
)

func (d direction) other() direction { return 1 - d }

// sender and receiver are the ranks of a direction.
func (d direction) sender() int   { return int(d) }
func (d direction) receiver() int { return int(d.other()) }

// payload is the type of a datagram that continues DATA.
const payload protocol.Type = 100

// fault affects datagrams in one direction. It drops them unless delay, copied, translated or passes is set.
type fault struct {
	dir  direction
	kind protocol.Type // 0 is any
	// nth is the number of the first affected datagram, counted from 1 without retransmissions. times is the number of
	// affected datagrams; 0 means all.
	nth, times int
	longer     int // applies only to datagrams longer than this
	delay      time.Duration
	copied     time.Duration // delivers a copy after this delay
	translated bool          // a NAT changes the source address
	// passes delivers the datagram, which only marks the moment for another action. mutes drops all later datagrams.
	passes, mutes bool

	seen, struck int
	last         protocol.Type // in its direction
}

func (f *fault) strikes(dir direction, kind protocol.Type, length int) bool {
	if f.dir != dir {
		return false
	}
	again := kind == f.last && kind != payload
	if f.last = kind; f.kind != 0 && f.kind != kind || length <= f.longer {
		return false
	}
	if !again {
		f.seen++
	}
	if f.seen < f.nth || f.times > 0 && f.struck == f.times {
		return false
	}
	f.struck++
	return true
}

// relay is the path between the host and a node. It injects faults and records the packets at the host's interface.
type relay struct {
	ends [2]netip.AddrPort // addresses of the host and of the node
	// conns are the sockets at the node's address as configured on the host, and at the host's address as configured on
	// the node. nat is the socket at the translated address.
	conns   [2]*net.UDPConn
	nat     *net.UDPConn
	passing sync.WaitGroup

	mu       sync.Mutex
	faults   []*fault
	isMuted  bool
	isStruck bool
	recorded []pcapng.Unit
}

// newRelay creates the path between a host and a node. toHost is the node's address as configured on the host, and
// toNode the host's address as configured on the node.
func newRelay(t *testing.T, host, node, toHost, toNode, nat netip.AddrPort, faults []fault) *relay {
	t.Helper()
	r := &relay{ends: [2]netip.AddrPort{host, node}}
	for i := range faults {
		f := faults[i]
		r.faults = append(r.faults, &f)
	}
	listen := func(at netip.AddrPort) *net.UDPConn {
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	r.conns, r.nat = [2]*net.UDPConn{listen(toHost), listen(toNode)}, listen(nat)
	for dir := range r.conns {
		r.passing.Go(func() {
			b := make([]byte, 2048)
			for {
				n, err := r.conns[dir].Read(b)
				if err != nil {
					return
				}
				r.pass(direction(dir), bytes.Clone(b[:n]))
			}
		})
	}
	return r
}

func (r *relay) close() {
	for _, conn := range append(r.conns[:], r.nat) {
		conn.Close()
	}
	r.passing.Wait()
}

// refuse makes the node's system report that the port is closed.
func (r *relay) refuse() { r.conns[0].Close() }

// mute starts or stops dropping all datagrams.
func (r *relay) mute(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isMuted = on
}

// struck reports whether any fault was applied.
func (r *relay) struck() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isStruck
}

// recording returns the packets recorded at the host's interface.
func (r *relay) recording() []pcapng.Unit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded[:len(r.recorded):len(r.recorded)]
}

// pass forwards a datagram, unless a fault applies to it.
func (r *relay) pass(dir direction, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.conns[0].LocalAddr().(*net.UDPAddr).AddrPort()
	if dir == out {
		r.record(r.ends[0], at, b)
	}
	if r.isMuted {
		return
	}
	through, kind := r.conns[dir.other()], payload
	if h, defect := protocol.CloudFPGA.Parse(b); defect.OK() {
		kind = h.Type
	}
	deliver := func(after time.Duration) {
		send := func() {
			if dir == in {
				r.record(through.LocalAddr().(*net.UDPAddr).AddrPort(), r.ends[0], b)
			}
			_, _ = through.WriteToUDPAddrPort(b, r.ends[dir.other()]) // the receiver may be down
		}
		if after == 0 {
			send()
			return
		}
		time.AfterFunc(after, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			send()
		})
	}
	delay := time.Duration(0)
	for _, f := range r.faults {
		if !f.strikes(dir, kind, len(b)) {
			continue
		}
		r.isStruck = true
		switch {
		case f.passes:
			r.isMuted = r.isMuted || f.mutes
		case f.delay > 0:
			delay = f.delay
		case f.copied > 0:
			deliver(f.copied)
		case f.translated:
			through = r.nat
		default:
			return
		}
	}
	deliver(delay)
}

func (r *relay) record(from, to netip.AddrPort, b []byte) {
	r.recorded = append(r.recorded,
		pcapng.Unit{Packet: int64(len(r.recorded) + 1), Time: time.Now(), Src: from, Dst: to,
			Proto: pcapng.UDP, Data: b})
}
