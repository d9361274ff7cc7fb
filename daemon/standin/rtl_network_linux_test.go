package standin_test

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// testWire is the network of one rank.
type testWire struct {
	in     chan mpe.RxPacket
	out    chan []byte
	fails  chan error
	closed chan struct{}
	close  sync.Once
	// addresses contains the addresses of all ranks.
	addresses []netip.AddrPort

	mu       sync.Mutex
	recorded []string
}

func newTestWire() *testWire {
	return &testWire{in: make(chan mpe.RxPacket, 1000), out: make(chan []byte, 1000), fails: make(chan error, 1),
		closed: make(chan struct{}), addresses: addressesIn("10.0.0.")}
}

// addressesIn returns the addresses of two ranks.
func addressesIn(network string) []netip.AddrPort {
	return []netip.AddrPort{netip.MustParseAddrPort(network + "1:2718"), netip.MustParseAddrPort(network + "2:2718")}
}

func (w *testWire) Recv(batch []mpe.RxPacket) (int, error) {
	select {
	case batch[0] = <-w.in:
		return 1, nil
	case err := <-w.fails:
		return 0, err
	case <-w.closed:
		return 0, mpe.ErrTransportClosed
	}
}

func (w *testWire) SendDatagram(peer int, b []byte) error {
	if peer != 0 {
		return errors.New("another rank")
	}
	w.out <- bytes.Clone(b)
	return nil
}

func (w *testWire) Record(peer int, sent bool, b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	direction := "received"
	if sent {
		direction = "sent"
	}
	w.recorded = append(w.recorded, direction)
}

func (w *testWire) Addresses() []netip.AddrPort { return w.addresses }

func (w *testWire) Close() error {
	w.close.Do(func() { close(w.closed) })
	return nil
}

// arrive delivers a datagram from rank 0 or from another address.
func (w *testWire) arrive(rank int, b []byte) {
	w.in <- mpe.RxPacket{Kind: mpe.RxDatagram, Peer: rank, SourceAddr: netip.MustParseAddrPort("10.0.0.1:2718"), Bytes: b}
}

// rtlNet prepares a kernel that uses a testWire. Its simulator is one of the programs in this test binary.
func rtlNet(t *testing.T, c *cluster, program ...string) (*running, *testWire) {
	k := c.prepare("rtl-net"+strings.TrimPrefix(spec(t, program...), "exec"), config.KernelOptions{})
	w := newTestWire()
	k.Kernel.(standin.WireKernel).Connect(w)
	return k, w
}

func TestRTLNet(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k, w := rtlNet(t, c, "net-echo")
	c.start(1, k)
	stats := func() *state.Datagrams {
		if s := k.Kernel.Stats().Simulation; s != nil {
			return s.Datagrams
		}
		return nil
	}
	// As with an FPGA, datagrams are lost until the simulation has opened the port.
	probe := []byte("probe")
	until(t, "an open port", func() bool {
		w.arrive(0, probe)
		return stats() != nil && stats().Received > 0
	})
	next := func() []byte {
		for {
			if b := <-w.out; !bytes.Equal(b, probe) {
				return b
			}
		}
	}
	w.arrive(mpe.UnknownPeer, []byte("from nowhere"))
	w.in <- mpe.RxPacket{Kind: mpe.RxTruncated, Peer: 0, Bytes: make([]byte, cosim.MaxDatagram)}
	for _, n := range []int{1, 32, 33, 1416} {
		sent := bytes.Repeat([]byte{byte(n)}, n)
		w.arrive(0, sent)
		if got := next(); !bytes.Equal(got, sent) {
			t.Errorf("% x comes back as % x", sent, got)
		}
	}
	// Three datagrams at once, as the system coalesces them.
	w.in <- mpe.RxPacket{Kind: mpe.RxDatagram, Peer: 0, SourceAddr: netip.MustParseAddrPort("10.0.0.1:2718"),
		Bytes: []byte("abcdefgh"), DatagramLen: 3}
	for _, want := range []string{"abc", "def", "gh"} {
		if got := next(); string(got) != want {
			t.Errorf("%q comes back as %q", want, got)
		}
	}
	if s := stats(); s.Unknown != 1 || s.Length != 1 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
	if _, cycle := k.Kernel.(standin.Simulated).Cycle(); cycle == 0 {
		t.Error("no cycle is known")
	}
	k.cancel(t)
	<-w.closed
	received, sent := 0, 0
	for _, r := range w.recorded {
		if r == "sent" {
			sent++
		} else {
			received++
		}
	}
	if s := stats(); received != int(s.Received) || sent != int(s.Sent) {
		t.Errorf("%d and %d datagrams were recorded, of %+v", received, sent, s)
	}
}

// TestRTLNetBoundary checks that a simulator that has the other boundary is rejected with advice.
func TestRTLNetBoundary(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k, _ := rtlNet(t, c, "sim-echo")
	c.start(1, k)
	role := c.prepare(rtl(t, "net-echo"), config.KernelOptions{Words: 8})
	c.start(1, role)
	for want, k := range map[string]*running{`write kernel: "rtl:`: k, `write kernel: "rtl-net:`: role} {
		until(t, "the failure", func() bool { return len(k.failures()) > 0 })
		if text := k.failures()[0]; !strings.Contains(text, want) {
			t.Errorf("failed with %q, want %q in it", text, want)
		}
		k.cancel(t)
	}
}

// TestRTLNetFaults checks that datagrams to an unknown rank are dropped and reported once, and that a fault
// ends the exchange.
func TestRTLNetFaults(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k, w := rtlNet(t, c, "net-faulty")
	c.start(1, k)
	until(t, "the fault", func() bool { s := k.Kernel.Stats().Simulation; return s != nil && s.Fault })
	if len(w.out) != 0 {
		t.Errorf("sent % x", <-w.out)
	}
	dropped := k.logs.FilterMessage("data of the role dropped").All()
	if len(dropped) != 1 || dropped[0].ContextMap()["signal"] != "soROLE_Nrc_Udp_Meta_TDATA" ||
		!strings.Contains(dropped[0].ContextMap()["problem"].(string), "dst_rank is 9") {
		t.Errorf("logged %+v", dropped)
	}
	if text := k.Kernel.Stats().Simulation.BlockReason(); !strings.HasPrefix(text, "soNRC_Udp_Data_tkeep at cycle ") {
		t.Errorf("it says %q", text)
	}
	k.cancel(t)
}

// TestRTLNetWireFails checks that the kernel ends if its wire cannot be read.
func TestRTLNetWireFails(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k, w := rtlNet(t, c, "net-echo")
	broken := errors.New("broken")
	w.fails <- broken
	c.start(1, k)
	if err := k.wait(t); !errors.Is(err, broken) {
		t.Errorf("it ends with %v", err)
	}
}

// meta returns metadata in the shell's format.
func meta(dstRank, srcRank uint64) uint64 {
	return dstRank | protocol.Port<<8 | srcRank<<24 | protocol.Port<<32
}

func init() {
	network := cosim.Hello{Version: cosim.Version, FIFO: 4096, Boundary: cosim.BoundaryNetwork}
	// net-echo returns each datagram.
	programs["net-echo"] = func([]string) int {
		s := hello(network)
		s.step(cosim.Record{Kind: cosim.KindPorts, Data: 1})
		for {
			var back []cosim.Record
			for _, r := range s.got {
				if r.Kind == cosim.KindInMeta {
					back = append(back, cosim.Record{Kind: cosim.KindOutMeta, Data: meta(r.Data>>24&0xff, r.Data&0xff)})
				} else {
					r.Kind = cosim.KindOutData
					back = append(back, r)
				}
			}
			s.got = nil
			s.step(back...)
		}
	}
	// net-faulty sends to an unknown rank twice, and then sends a line with a gap in it.
	programs["net-faulty"] = func([]string) int {
		s := hello(network)
		for range 2 {
			s.step(cosim.Record{Kind: cosim.KindOutMeta, Data: meta(9, 1)},
				cosim.Record{Kind: cosim.KindOutData, Keep: 0xff, Last: true})
		}
		s.step(cosim.Record{Kind: cosim.KindOutMeta, Data: meta(0, 1)},
			cosim.Record{Kind: cosim.KindOutData, Keep: 0x81, Last: true})
		for {
			s.step()
		}
	}
}
