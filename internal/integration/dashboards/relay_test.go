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

// relay is a bad network between rank 0 of one daemon and the ranks of another. It presents the ranks of each side to
// the other side under its own addresses.
type relay struct {
	rank0  netip.AddrPort
	back   *net.UDPConn  // stands for rank 0
	odds   float64       // probability that a packet is lost
	late   time.Duration // delay of rank 0's packets
	mu     sync.Mutex
	fronts map[netip.AddrPort]*net.UDPConn // sockets that represent the other ranks, by the ranks' real addresses
}

// newRelay returns a relay without destinations. back is the address that represents rank 0.
func newRelay(t *testing.T, rank0, back netip.AddrPort, odds float64, late time.Duration) *relay {
	t.Helper()
	r := &relay{rank0: rank0, back: socket(t, back), odds: odds, late: late,
		fronts: make(map[netip.AddrPort]*net.UDPConn)}
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

// to relays datagrams to the rank at address real, which address front represents.
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

// pump passes packets to each until the socket is closed.
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
