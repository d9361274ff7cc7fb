package life

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// relay loses and duplicates packets between ranks. All other ranks know a rank by its front address at the relay. The
// relay forwards packets for a front address to its rank, from the front address of the sender.
type relay struct {
	ranks      map[netip.AddrPort]int // by their own addresses
	own        []netip.AddrPort
	conns      []*net.UDPConn
	lose, copy float64

	passed, lost, copied atomic.Uint64
}

// newRelay returns a relay that runs until the test ends.
func newRelay(t testing.TB, own, front []string, lose, twice float64) *relay {
	t.Helper()
	r := &relay{ranks: map[netip.AddrPort]int{}, lose: lose, copy: twice}
	for rank := range own {
		addr := netip.MustParseAddrPort(own[rank])
		r.ranks[addr] = rank
		r.own = append(r.own, addr)
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(front[rank])))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadBuffer(1 << 20) // up to the system's limit
		t.Cleanup(func() { conn.Close() })
		r.conns = append(r.conns, conn)
	}
	for to := range r.conns {
		go r.pass(to)
	}
	return r
}

// pass forwards the packets sent to a rank.
func (r *relay) pass(to int) {
	b := make([]byte, 1<<16)
	for {
		n, from, err := r.conns[to].ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		sender, known := r.ranks[from]
		if !known {
			continue
		}
		odds := rand.Float64()
		if odds < r.lose {
			r.lost.Add(1)
			continue
		}
		times := 1
		if odds < r.lose+r.copy {
			r.copied.Add(1)
			times = 2
		}
		for range times {
			r.passed.Add(1)
			_, _ = r.conns[sender].WriteToUDPAddrPort(b[:n], r.own[to]) // may fail if the rank is down
		}
	}
}
