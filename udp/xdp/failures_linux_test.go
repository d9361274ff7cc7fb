package xdp_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// TestCloseWhilePolling closes transports while other goroutines poll them.
func TestCloseWhilePolling(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	for range 30 {
		m := newMap(t, false)
		c, err := h.listen(udp.Config{Rank: 0, Map: m, OpenPath: xdp.Open})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			batch := make([]mpe.RxPacket, 8)
			for {
				if _, err := c.Poll(batch, nil); err != nil {
					if !errors.Is(err, mpe.ErrTransportClosed) {
						t.Error(err)
					}
					break
				}
				c.Sleep()
			}
			c.Sleep()
			c.Path()
		})
		time.Sleep(2 * time.Millisecond)
		c.Close()
		wg.Wait()
	}
}

// TestBytesAfterClose reads a received datagram after the transport is closed.
func TestBytesAfterClose(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	m := newMap(t, false)
	c, err := h.listen(udp.Config{Rank: 1, Map: m, OpenPath: xdp.Open})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.listen(udp.Config{Rank: 0, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SendHeader(1, bytes.Repeat([]byte{0x96}, protocol.HeaderLen)); err != nil {
		t.Fatal(err)
	}
	batch := make([]mpe.RxPacket, 8)
	n, err := c.Recv(batch)
	if n != 1 || err != nil {
		t.Fatal(n, err)
	}
	c.Close()
	_ = fmt.Sprint(batch[0].Bytes) // faults if the memory is no longer mapped
}

// TestCloseWhileSocketIsFull closes a transport while a send waits for the kernel's socket.
func TestCloseWhileSocketIsFull(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	tc := needs.Program(t, "a slow device", "tc", "iproute2")
	h[0].Run(tc, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "8kbit", "burst", "3000", "limit", "10000000")
	m := newMap(t, false)
	c, err := h.listen(udp.Config{Rank: 0, Map: m, OpenPath: xdp.Open})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for {
			err := c.SendData(1, make([]byte, protocol.HeaderLen), make([]byte, 200000), protocol.CPUShape())
			if err != nil {
				done <- err
				return
			}
		}
	}()
	time.Sleep(300 * time.Millisecond)
	closed := make(chan struct{})
	go func() { c.Path(); c.Close(); close(closed) }()
	select {
	case <-closed:
		t.Log(<-done)
	case <-time.After(3 * time.Second):
		t.Error("Close waits for the send")
		h[0].Run(tc, "qdisc", "del", "dev", "eth0", "root")
		<-closed
	}
}

// TestFewerTransmitQueues uses a device with more receive than transmit queues.
func TestFewerTransmitQueues(t *testing.T) {
	h := newHosts(t)
	h[0].IP("link del eth0")
	h[0].Join("eth0 numtxqueues 1 numrxqueues 4", h[1], "eth0 numtxqueues 4 numrxqueues 1")
	for i := range h {
		h[i].IP(fmt.Sprintf("addr add %v/24 dev eth0", address(i, 0, false).Addr()))
	}
	h.resolve(t, false)
	for range 4 {
		m := newMap(t, false)
		var ends [2]*transporttest.End
		for rank := range ends {
			c, err := h.listen(udp.Config{Rank: rank, Map: m, OpenPath: xdp.Open})
			if err != nil {
				t.Fatal(err)
			}
			ends[rank] = transporttest.Start(t, c)
		}
		if err := ends[0].SendHeader(1, bytes.Repeat([]byte{0x96}, protocol.HeaderLen)); err != nil {
			t.Error(err)
		}
		select {
		case <-ends[1].RxPackets:
		case <-time.After(time.Second):
			t.Error("the datagram is lost")
		}
	}
}

// TestOneRankStarvesOthers floods a rank that does not read.
func TestOneRankStarvesOthers(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	var conns [2]*udp.Conn
	var maps [2]*rankmap.Map
	for i := range conns {
		var err error
		maps[i] = newMap(t, false)
		if conns[i], err = h.listen(udp.Config{Rank: 0, Map: maps[i], OpenPath: xdp.Open}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conns[i].Close() })
	}
	header := make([]byte, protocol.HeaderLen)
	first := h.dialFrom(t, maps[0])
	for range 5000 {
		if _, err := first.Write(header); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.dialFrom(t, maps[1]).Write(header); err != nil {
		t.Fatal(err)
	}
	transporttest.Start(t, conns[1]).Next(t)
}

// TestMoveAtOnce sends right after an address has changed.
func TestMoveAtOnce(t *testing.T) {
	p := newPair(t, xdp.Open)
	p.awaitPath(t)
	for i := range 100 {
		p.paths[0].Move([]netip.AddrPort{address(0, 1, false), address(unknown, uint16(1+i), false)})
		if port, ok := xdp.SendsTo(p.paths[0], 1); ok && port != 1+i {
			t.Fatalf("the path sends to port %d, want %d", port, 1+i)
		}
		time.Sleep(time.Duration(i) * 10 * time.Microsecond)
	}
}

// TestDownBeforeNoticed sends while the device is down, before the path has read it in the kernel's tables. The caller
// gets an error, and the datagram must not be sent later.
func TestDownBeforeNoticed(t *testing.T) {
	p := newPair(t, xdp.Open)
	p.awaitPath(t)
	header := bytes.Repeat([]byte{0x77}, protocol.HeaderLen)
	restore := xdp.KeepTable(p.paths[0])
	p.hosts[0].IP("link set eth0 down")
	for p.paths[0].State().ByKernel == nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	restore()
	failed := 0
	for range 100 {
		if err := p.ends[0].SendHeader(1, header); err != nil {
			failed++
		}
	}
	p.hosts[0].IP("link set eth0 up")
	time.Sleep(50 * time.Millisecond)
	late := 0
	for range 20 {
		_ = p.ends[0].SendHeader(1, bytes.Repeat([]byte{0x96}, protocol.HeaderLen))
		select {
		case got := <-p.ends[1].RxPackets:
			if bytes.Equal(got.Bytes, header) {
				late++
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	if failed != 100 || late > 0 {
		t.Errorf("%d of 100 sends failed, %d datagrams arrived later", failed, late)
	}
	p.awaitPath(t)
	if free := xdp.FreeFrames(p.paths[0]); free != 2048 {
		t.Errorf("%d frames are left of 2048", free)
	}
}

// TestCloseUnderLoad sends, receives and asks for the state in both directions until the ranks are closed.
func TestCloseUnderLoad(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	for range 8 {
		m := newMap(t, false)
		var wg sync.WaitGroup
		var cs [2]*udp.Conn
		for rank := range cs {
			var err error
			if cs[rank], err = h.listen(udp.Config{Rank: rank, Map: m, OpenPath: xdp.Open}); err != nil {
				t.Fatal(err)
			}
		}
		for rank, c := range cs {
			wg.Go(func() {
				batch := make([]mpe.RxPacket, 64)
				for {
					n, err := c.Recv(batch)
					if err != nil {
						return
					}
					for _, p := range batch[:n] {
						_ = bytes.Clone(p.Bytes)
					}
				}
			})
			wg.Go(func() {
				for i := 0; ; i++ {
					err := c.SendHeader(1-rank, make([]byte, 32))
					if i%3 == 0 && err == nil {
						err = c.SendData(1-rank, make([]byte, 32), make([]byte, 4*(i%9000)), protocol.CPUShape())
					}
					if err != nil {
						if !errors.Is(err, mpe.ErrTransportClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
			wg.Go(func() {
				for c.Path() != nil {
					time.Sleep(100 * time.Microsecond)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		cs[0].Close()
		time.Sleep(5 * time.Millisecond)
		cs[1].Close()
		wg.Wait()
	}
}

// TestDeviceRemoved removes the device and creates it again. The kernel's socket works again at once, and the path
// after the next start.
func TestDeviceRemoved(t *testing.T) {
	p := newPair(t, xdp.Open)
	p.awaitPath(t)
	p.hosts[0].IP("link del eth0")
	header := bytes.Repeat([]byte{0x96}, protocol.HeaderLen)
	for range 20 {
		if err := p.ends[0].SendHeader(1, header); err == nil {
			t.Error("no error without a device")
		}
		time.Sleep(time.Millisecond)
	}
	p.hosts[0].Join("eth0", p.hosts[1], "eth0")
	for i := range p.hosts {
		p.hosts[i].IP(fmt.Sprintf("addr add %v/24 dev eth0", address(i, 0, false).Addr()))
	}
	p.resolve(t, false)
	for range 3 {
		if err := p.ends[0].SendHeader(1, header); err != nil {
			t.Error(err)
		}
		if got := p.ends[1].Next(t); !bytes.Equal(got.Bytes, header) {
			t.Error(got)
		}
	}
	c, err := p.hosts.listen(udp.Config{Rank: 0, Map: newMap(t, false), OpenPath: xdp.Open})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestAllocations checks that neither a send nor a poll allocates memory.
func TestAllocations(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	m := newMap(t, false)
	c, err := h.listen(udp.Config{Rank: 0, Map: m, OpenPath: xdp.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer := h.dialFrom(t, m)
	header, batch := make([]byte, protocol.HeaderLen), make([]mpe.RxPacket, 64)
	var all mpe.Placements
	all.Set(mpe.Placement{Peer: 1, Buf: make([]byte, 1000)})
	poll := func(all *mpe.Placements) {
		_, _ = peer.Write(header)
		for n := 0; n == 0; n, _ = c.Poll(batch, all) {
		}
	}
	for name, f := range map[string]func(){
		"SendHeader":            func() { _ = c.SendHeader(1, header) },
		"SendData":              func() { _ = c.SendData(1, header, header, protocol.CPUShape()) },
		"Poll":                  func() { poll(nil) },
		"Poll with a placement": func() { poll(&all) },
	} {
		f()
		if n := testing.AllocsPerRun(200, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
