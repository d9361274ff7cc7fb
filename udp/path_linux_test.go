package udp

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// fakePath is a Path whose device is this test.
type fakePath struct {
	carries    bool
	coalescing Coalescing
	staged     int
	space      int          // number of datagrams that Stage accepts
	flushes    atomic.Int32 // number of calls of Flush
	flushError func(call int32) error
	// batches are returned by successive calls of Receive. An empty one makes Pending return false once.
	batches     [][]Datagram
	bypassed    uint64
	descriptors []int
}

func (p *fakePath) Carries(int, int) bool { return p.carries }

func (p *fakePath) Stage(int, *[3][]byte) bool {
	if p.staged == p.space {
		return false
	}
	p.staged++
	return true
}

func (p *fakePath) Flush() error {
	if call := p.flushes.Add(1); p.flushError != nil {
		return p.flushError(call)
	}
	return nil
}

func (p *fakePath) Receive(batch []Datagram) int {
	if len(p.batches) == 0 {
		return 0
	}
	n := copy(batch, p.batches[0])
	p.batches = p.batches[1:]
	return n
}

func (p *fakePath) Pending() bool {
	if len(p.batches) == 0 {
		return false
	}
	if len(p.batches[0]) == 0 {
		p.batches = p.batches[1:]
		return false
	}
	return true
}

func (p *fakePath) Discard() (n int) {
	n, p.staged = p.staged, 0
	return n
}

func (p *fakePath) Bypassed() uint64       { return p.bypassed }
func (p *fakePath) Coalescing() Coalescing { return p.coalescing }
func (p *fakePath) Descriptors() []int     { return p.descriptors }
func (p *fakePath) State() state.Path      { return state.Path{} }
func (p *fakePath) Move([]netip.AddrPort)  {}
func (p *fakePath) Close()                 {}

// pathTest is a pathSocket on a fakePath, and a plain socket, its only peer.
type pathTest struct {
	*pathSocket
	peer *net.UDPConn
}

func newPathTest(t *testing.T, path *fakePath) *pathTest {
	t.Helper()
	listen := func() *net.UDPConn {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	peer := listen()
	t.Cleanup(func() { peer.Close() })
	peers := []netip.AddrPort{peer.LocalAddr().(*net.UDPAddr).AddrPort()}
	cfg := &Config{Map: transporttest.MapOf(t, peers...),
		OpenPath: func(netip.AddrPort, []netip.AddrPort) (Path, error) { return path, nil }}
	s, err := openPathSocket(listen(), peers, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return &pathTest{s.(*pathSocket), peer}
}

// write sends a datagram to the kernel's socket.
func (p *pathTest) write(t *testing.T, b string) {
	t.Helper()
	if _, err := p.peer.WriteToUDP([]byte(b), net.UDPAddrFromAddrPort(p.local.addrPort(p.local.len))); err != nil {
		t.Fatal(err)
	}
}

// receiveAll polls with batches of the given length until it has n datagrams.
func (p *pathTest) receiveAll(t *testing.T, n, length int) (all []string) {
	t.Helper()
	in := make([]incoming, length)
	for limit := time.Now().Add(2 * time.Second); len(all) < n && time.Now().Before(limit); {
		got, err := p.poll(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in[:got] {
			all = append(all, string(in[i].bytes))
		}
	}
	return all
}

// TestPathUnwatch checks that the path and the kernel's socket wake a sleeper, and cost nothing while callers poll.
func TestPathUnwatch(t *testing.T) {
	device, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(device)
	for name, path := range map[string]*fakePath{"path": {descriptors: []int{device}}, "kernel": {}} {
		p := newPathTest(t, path)
		if name == "kernel" {
			p.write(t, "datagram")
		}
		readable := func(limit int) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.pollFD()), Events: unix.POLLIN}}, limit)
			if err != nil {
				t.Fatal(err)
			}
			return n == 1
		}
		for range 2 {
			if !p.sleep() || !readable(2000) {
				t.Errorf("%s: a datagram does not wake a sleeper", name)
			}
			if p.unwatch(); readable(0) {
				t.Errorf("%s: a datagram makes the descriptor readable while callers poll", name)
			}
		}
		p.close()
		if p.unwatch(); p.sleep() {
			t.Errorf("%s: sleeping is allowed after close", name)
		}
	}
}

// TestPathOrderAroundHeld receives a datagram of the kernel's socket between two that arrive on the path during the
// poll.
func TestPathOrderAroundHeld(t *testing.T) {
	p := newPathTest(t, &fakePath{bypassed: 1, batches: [][]Datagram{
		{}, {{Bytes: []byte("A")}, {Bytes: []byte("B"), After: 1}},
	}})
	p.write(t, "K")
	if got := p.receiveAll(t, 3, ringLen); !slices.Equal(got, []string{"A", "K", "B"}) {
		t.Errorf("received %q", got)
	}
}

// TestPathOrderOfQueues receives datagrams of two queues of the path. That of the second one precedes a datagram of the
// kernel's socket, which precedes that of the first one.
func TestPathOrderOfQueues(t *testing.T) {
	p := newPathTest(t, &fakePath{bypassed: 1, batches: [][]Datagram{
		{{Bytes: []byte("B"), After: 1}, {Bytes: []byte("A")}},
	}})
	p.write(t, "K")
	if got := p.receiveAll(t, 3, ringLen); !slices.Equal(got, []string{"A", "K", "B"}) {
		t.Errorf("received %q", got)
	}
}

// TestPathHeldPayload receives a datagram of the kernel's socket directly into the caller's memory, and returns one of
// the path first. The caller then uses the memory for that one.
func TestPathHeldPayload(t *testing.T) {
	for _, head := range []int{0, 4} {
		p := newPathTest(t, &fakePath{bypassed: 1, batches: [][]Datagram{{}, {{Bytes: []byte("A")}}}})
		want := bytes.Repeat([]byte("K"), 100)
		p.write(t, string(want))
		buf, in := make([]byte, 200), make([]incoming, ringLen)
		for _, want := range [][]byte{[]byte("A"), want} {
			n, err := p.pollInto(in, head, buf)
			if err != nil || n != 1 {
				t.Fatalf("%d datagrams, %v", n, err)
			}
			if got := append(bytes.Clone(in[0].bytes), in[0].rest...); !bytes.Equal(got, want) {
				t.Errorf("head %d: received %q, want %q", head, got, want)
			}
			clear(buf)
		}
	}
}

// TestPathOrderAroundPiece receives a coalesced piece in several batches. No datagram of the path may come between
// them.
func TestPathOrderAroundPiece(t *testing.T) {
	p := newPathTest(t, &fakePath{coalescing: CoalesceAlways, bypassed: 1, batches: [][]Datagram{
		{}, {{Bytes: []byte("B"), After: 1}},
	}})
	if !p.groEnabled() {
		t.Skip("no UDP_GRO")
	}
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("%0300d", i))
	}
	var control segmentControl
	control.set(300)
	_, _, err := p.peer.WriteMsgUDP([]byte(join(want)), control[:], net.UDPAddrFromAddrPort(p.local.addrPort(p.local.len)))
	if err != nil {
		t.Skipf("no UDP_SEGMENT: %v", err)
	}
	want = append(want, "B")
	if got := p.receiveAll(t, len(want), 4); !slices.Equal(got, want) {
		t.Errorf("received %d datagrams, out of order or incomplete: %q", len(got), got)
	}
}

func (p *pathTest) groEnabled() bool { return p.in.groEnabled }

func join(parts []string) (s string) {
	for _, part := range parts {
		s += part
	}
	return s
}

// TestPathBusy sends a datagram while the device is busy. It must not wait for the next one.
func TestPathBusy(t *testing.T) {
	path := &fakePath{carries: true, space: 1, flushError: func(call int32) error {
		if call <= 3 {
			return unix.EAGAIN
		}
		return nil
	}}
	p := newPathTest(t, path)
	out := []outgoing{{parts: [3][]byte{[]byte("A")}}}
	if n, err := p.send(out, true); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for limit := time.Now().Add(2 * time.Second); path.flushes.Load() < 4; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("the datagram stays in the ring after %d attempts", path.flushes.Load())
		}
	}
}

// TestPathDown sends by the kernel's socket after the device of the path has failed with a datagram in its ring.
func TestPathDown(t *testing.T) {
	path := &fakePath{carries: true, space: 1, flushError: func(int32) error { return unix.ENETDOWN }}
	p := newPathTest(t, path)
	out := []outgoing{{parts: [3][]byte{[]byte("A")}}}
	for range 3 { // at first, the path does not know that the device is down
		if n, err := p.send(out, true); n != 1 || err != nil {
			t.Errorf("by the kernel's socket: %d, %v", n, err)
		}
		path.carries = false
	}
	if path.staged != 0 {
		t.Errorf("%d datagrams may still be sent later", path.staged)
	}
	buf := make([]byte, 10)
	for range 3 {
		_ = p.peer.SetReadDeadline(time.Now().Add(2 * time.Second))
		if _, err := p.peer.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPathKernelPeer finds a datagram of a peer that the path does not carry at once. If a poll returns nothing, the
// engine assumes that nothing has arrived.
func TestPathKernelPeer(t *testing.T) {
	path := &fakePath{space: 9}
	p := newPathTest(t, path)
	in := make([]incoming, 1)
	for range 3 {
		if _, err := p.send([]outgoing{{parts: [3][]byte{[]byte("request")}}}, true); err != nil {
			t.Fatal(err)
		}
		p.write(t, "answer")
		if n, err := p.poll(in); n != 1 || err != nil {
			t.Fatalf("poll: %d datagrams, %v", n, err)
		}
	}
	path.carries = true
	if _, err := p.send([]outgoing{{parts: [3][]byte{[]byte("request")}}}, true); err != nil {
		t.Fatal(err)
	}
	if n := p.kernelPeers.Load(); n != 0 || path.staged != 1 {
		t.Errorf("%d peers by the kernel's socket, %d datagrams by the path", n, path.staged)
	}
}

// TestPathMessage sends messages in several batches. All datagrams of a message take the same way, even if the last
// batch is short, or the path carries the peer again. Only single datagrams in between are independent.
func TestPathMessage(t *testing.T) {
	path := &fakePath{space: 1000, carries: true}
	p := newPathTest(t, path)
	send := func(n int, at position, wantByPath bool) {
		t.Helper()
		out := make([]outgoing, n)
		for i := range out {
			out[i] = outgoing{parts: [3][]byte{make([]byte, 1416)}, position: at}
		}
		before := path.staged
		if sent, err := p.send(out, true); err != nil || sent == 0 {
			t.Fatalf("%d datagrams: sent %d, %v", n, sent, err)
		}
		if byPath := path.staged > before; byPath != wantByPath {
			t.Errorf("%d datagrams at position %d: by the path %v, want %v", n, at, byPath, wantByPath)
		}
	}
	send(pathBurst, firstOfMessage, true)
	send(1, laterInMessage, true)
	send(pathBurst+1, firstOfMessage, false)
	send(1, onlyDatagram, true)
	send(1, laterInMessage, false)
	if long := p.pathState().Long; long != pathBurst+2 {
		t.Errorf("%d datagrams of long messages, want %d", long, pathBurst+2)
	}
	send(1, firstOfMessage, true)
	path.carries = false
	send(1, laterInMessage, false)
	path.carries = true
	send(1, laterInMessage, false)
	send(1, firstOfMessage, true)
}
