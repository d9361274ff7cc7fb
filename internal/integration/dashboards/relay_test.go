package dashboards_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// relay is a bad way between rank 0 of one daemon and ranks of another. To either side
// it has the addresses of the ranks of the other.
type relay struct {
	rank0  netip.AddrPort
	back   *net.UDPConn  // rank 0, as the others see it
	odds   float64       // that a packet is lost
	late   time.Duration // by how much packets of rank 0 are delayed
	mu     sync.Mutex
	fronts map[netip.AddrPort]*net.UDPConn // the others, as rank 0 sees them, by their real addresses
}

// newRelay returns a relay to nobody yet. back is where rank 0 seems to be.
func newRelay(t *testing.T, rank0, back netip.AddrPort, odds float64, late time.Duration) *relay {
	t.Helper()
	r := &relay{rank0: rank0, back: socket(t, back), odds: odds, late: late, fronts: make(map[netip.AddrPort]*net.UDPConn)}
	pump(r.back, func(p []byte, from netip.AddrPort) {
		r.mu.Lock()
		front := r.fronts[from]
		r.mu.Unlock()
		if front != nil && rand.Float64() >= r.odds {
			front.WriteToUDPAddrPort(p, r.rank0)
		}
	})
	return r
}

// to relays to the rank at real, which seems to be at front.
func (r *relay) to(t *testing.T, front, real netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn := socket(t, front)
	r.mu.Lock()
	r.fronts[real] = conn
	r.mu.Unlock()
	pump(conn, func(p []byte, _ netip.AddrPort) {
		if rand.Float64() >= r.odds {
			p = bytes.Clone(p)
			time.AfterFunc(r.late, func() { r.back.WriteToUDPAddrPort(p, real) })
		}
	})
	return conn
}

// pump hands packets on until the socket is closed.
func pump(conn *net.UDPConn, each func(p []byte, from netip.AddrPort)) {
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			each(b[:n], from)
		}
	}()
}
