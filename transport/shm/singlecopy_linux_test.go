package shm

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// exposing returns two Conns that can read each other's memory.
func exposing(t testing.TB) (a, b *Conn) {
	t.Helper()
	return exposingBy(t, Config{})
}

func exposingBy(t testing.TB, cfg Config) (a, b *Conn) {
	t.Helper()
	t.Setenv(EnvSingleCopy, "auto")
	a, b = polledBy(t, cfg)
	if exposes, fetches := a.SingleCopy(1); !exposes || !fetches {
		t.Skip("the system does not let processes read each other's memory")
	}
	return a, b
}

// exposedPayload returns a packet with an exposed payload of n equal bytes.
func exposedPayload(src, dst int, number uint32, n int) mpe.Packet {
	p := transporttest.Packet(src, dst, number, 0)
	p.Payload, p.Exposed = bytes.Repeat([]byte{byte(number)}, n), uint64(number)
	return p
}

// deliver sends a packet from a to b and returns it as received.
func deliver(t *testing.T, a, b *Conn, p mpe.Packet) mpe.RxPacket {
	t.Helper()
	batch := make([]mpe.RxPacket, 1)
	if n, err := a.SendPackets(1, []mpe.Packet{p}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := b.Poll(batch, nil); n != 1 || err != nil || batch[0].Kind != mpe.RxDatagram {
		t.Fatalf("%d, %v, %+v", n, err, batch[0])
	}
	return batch[0]
}

// TestFetch checks that long exposed payload is fetched, and that all other payload is in the ring.
func TestFetch(t *testing.T) {
	a, b := exposing(t)
	if links, singleCopy := a.Sharing(); links != 1 || singleCopy != 1 {
		t.Errorf("%d links, %d with single copies", links, singleCopy)
	}
	if n := a.LongPayload(1); n != LongPayload(DefaultRing(2)) {
		t.Errorf("packets may have %d bytes", n)
	}
	for i, n := range []int{0, 1, MinSingleCopy - 1, MinSingleCopy, MaxPayload, MaxPayload + 1,
		LongPayload(DefaultRing(2))} {
		p := exposedPayload(0, 1, uint32(i+1), n)
		x := deliver(t, a, b, p)
		if n < MinSingleCopy {
			if x.RemoteBytes != 0 || !bytes.Equal(x.Bytes, whole(p)) {
				t.Errorf("%d bytes: %d arrived, %d are away", n, len(x.Bytes), x.RemoteBytes)
			}
			continue
		}
		dst := make([]byte, n)
		if !bytes.Equal(x.Bytes, p.Header[:]) || x.RemoteBytes != n || !b.Fetch(&x, dst) || !bytes.Equal(dst, p.Payload) {
			t.Errorf("%d bytes: %d arrived, %d are away", n, len(x.Bytes), x.RemoteBytes)
		}
		for name, wrong := range map[string]mpe.RxPacket{"again": x, "no ticket": {Ticket: 99},
			"no number": {Ticket: -1}} {
			if b.Fetch(&wrong, dst) {
				t.Errorf("%s: it is fetched", name)
			}
		}
	}
	p := exposedPayload(0, 1, 1, LongPayload(DefaultRing(2))+1)
	if n, err := a.SendPackets(1, []mpe.Packet{p}); n != 0 || !errors.Is(err, ErrBadPacket) {
		t.Errorf("a packet that is too long: %d, %v", n, err)
	}
	x := deliver(t, a, b, exposedPayload(0, 1, 1, MinSingleCopy))
	if b.Fetch(&x, make([]byte, MinSingleCopy+1)) {
		t.Error("more is fetched than was exposed")
	}
	for _, peer := range []int{-1, 0, 2} {
		a.Invalidate(peer, 1)
		exposes, fetches := a.SingleCopy(peer)
		if exposes || fetches || a.LongPayload(peer) != 0 {
			t.Errorf("rank %d can get something", peer)
		}
	}
}

// TestNoSingleCopy checks that all payload is copied if either side has disabled single copies.
func TestNoSingleCopy(t *testing.T) {
	t.Setenv(EnvSingleCopy, "auto")
	m := transporttest.Map(t, 2)
	for off := range 3 {
		var conns [2]*Conn
		for rank := range conns {
			conns[rank] = listen(t, Config{Rank: rank, Map: m, NoSingleCopy: rank == off || off == 2})
		}
		batch := make([]mpe.RxPacket, 1)
		for rank, c := range conns {
			if n, err := c.Recv(batch); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if exposes, fetches := c.SingleCopy(1 - rank); exposes || fetches || c.LongPayload(1-rank) != 0 {
				t.Errorf("off at %d: rank %d exposes: %v, fetches: %v", off, rank, exposes, fetches)
			}
			if links, singleCopy := c.Sharing(); links != 1 || singleCopy != 0 {
				t.Errorf("off at %d: rank %d has %d links, %d with single copies", off, rank, links, singleCopy)
			}
		}
		for _, n := range []int{MaxPayload, LongPayload(DefaultRing(2))} {
			p := exposedPayload(0, 1, 1, n)
			if x := deliver(t, conns[0], conns[1], p); x.RemoteBytes != 0 || !bytes.Equal(x.Bytes, whole(p)) {
				t.Errorf("off at %d: %d bytes arrived, %d are away", off, len(x.Bytes), x.RemoteBytes)
			}
		}
		for _, c := range conns {
			c.Close()
		}
	}
}

func TestEnvSingleCopy(t *testing.T) {
	for value, want := range map[string]bool{"": false, "auto": false, "off": true} {
		t.Setenv(EnvSingleCopy, value)
		if c := listen(t, Config{Map: transporttest.Map(t, 2)}); c.cfg.NoSingleCopy != want {
			t.Errorf("%q: %v", value, c.cfg.NoSingleCopy)
		}
	}
	t.Setenv(EnvSingleCopy, "no")
	if _, err := Listen(Config{Map: transporttest.Map(t, 2)}); err == nil ||
		err.Error() != `shm: ZRLMPI_SINGLE_COPY: "no" is not known: use auto or off` {
		t.Errorf("got %v", err)
	}
}

// TestDescriptorsEndWithTheLink checks that descriptors end together with their link, whose packets will be
// retransmitted.
func TestDescriptorsEndWithTheLink(t *testing.T) {
	a, b := exposing(t)
	x := deliver(t, a, b, exposedPayload(0, 1, 1, MinSingleCopy))
	a.peers[1].link.conn.Close()
	batch := make([]mpe.RxPacket, 1)
	for _, c := range []*Conn{a, b} { // up to the next link
		if c == b {
			continue // packets that it returned stay valid
		}
		if n, err := c.nap(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxConnected {
			t.Fatalf("%d, %v, %+v", n, err, batch[0])
		}
	}
	if b.Fetch(&x, make([]byte, MinSingleCopy)) {
		t.Error("it can still be fetched")
	}
}

// TestUnreadable checks that unreadable memory ends the link, and that payload is copied through the ring of
// the next link.
func TestUnreadable(t *testing.T) {
	a, b := exposing(t)
	memory, err := unix.Mmap(-1, 0, 2*MinSingleCopy, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	p := transporttest.Packet(0, 1, 1, 0)
	p.Payload, p.Exposed = memory[:MinSingleCopy], 1
	x := deliver(t, a, b, p)
	if err := unix.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	if b.Fetch(&x, make([]byte, MinSingleCopy)) {
		t.Fatal("memory was read that is not there")
	}
	batch := make([]mpe.RxPacket, 1)
	if n, err := b.nap(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxBroken {
		t.Fatalf("%d, %v, %+v", n, err, batch[0])
	}
	if _, err := b.Link(0); err == nil {
		t.Error("the reason for the missing link is not reported")
	} else if want := "the link to rank 0 is closed: reading the memory of process"; len(err.Error()) < len(want) ||
		err.Error()[:len(want)] != want {
		t.Errorf("got %v", err)
	}
	if n, err := b.nap(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxConnected {
		t.Fatalf("%d, %v, %+v", n, err, batch[0])
	}
	if n, err := a.nap(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxConnected {
		t.Fatalf("%d, %v, %+v", n, err, batch[0])
	}
	if exposes, fetches := a.SingleCopy(1); exposes || !fetches || a.LongPayload(1) != 0 {
		t.Errorf("rank 0 exposes: %v, fetches: %v", exposes, fetches)
	}
	p = exposedPayload(0, 1, 2, MinSingleCopy)
	if x := deliver(t, a, b, p); x.RemoteBytes != 0 || !bytes.Equal(x.Bytes, whole(p)) {
		t.Errorf("%d bytes arrived, %d are away", len(x.Bytes), x.RemoteBytes)
	}
}

// TestRemote checks that memory is read only from the process that said hello, and only while that process
// exists.
func TestRemote(t *testing.T) {
	exposing(t)
	n, c := newNonce(), new(copier)
	defer c.stop(mpe.ErrTransportClosed)
	pid := unix.Getpid()
	other := n.id()
	other.nonce[3]++
	for name, tt := range map[string]struct {
		r    remote
		want bool
	}{
		"itself":       {remote{pid: pid, memoryID: n.id()}, true},
		"another":      {remote{pid: pid, memoryID: other}, false},
		"nobody":       {remote{pid: 1 << 30, memoryID: n.id()}, false},
		"nowhere":      {remote{pid: pid, memoryID: memoryID{addr: 1, nonce: *n}}, false},
		"not said":     {remote{pid: pid}, false},
		"all the ones": {remote{pid: pid, memoryID: memoryID{addr: 1<<64 - 1}}, false},
	} {
		pages, err := c.probe(tt.r)
		pages.close()
		if got := err == nil; got != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPipelined checks that pipelined Conns copy payload into the ring, and copy an advertised message only
// while its sender does not poll.
func TestPipelined(t *testing.T) {
	a, b := exposingBy(t, Config{Pipelined: true})
	if n := a.LongPayload(1); n != 0 {
		t.Errorf("packets with %d bytes are exposed", n)
	}
	p := exposedPayload(0, 1, 1, MaxPayload)
	if x := deliver(t, a, b, p); x.RemoteBytes != 0 || !bytes.Equal(x.Bytes, whole(p)) {
		t.Errorf("%d bytes arrived, %d are away", len(x.Bytes), x.RemoteBytes)
	}
	p = advertising(0, 1, 2, maxSingleCopy)
	x := deliver(t, a, b, p)
	dst := make([]byte, maxSingleCopy)
	if x.Advertised == 0 || b.Get(0, x.Advertised, dst) {
		t.Error("it is taken from a peer that polls")
	}
	if !a.Sleep() {
		t.Fatal("something was received")
	}
	if !b.Get(0, x.Advertised, dst) || !bytes.Equal(dst, p.Advertised) {
		t.Error("it is not taken from a peer that sleeps")
	}
}

// verdict sets whether a peer counts as far.
func (c *Conn) verdict(peer int, far bool) {
	p := c.peers[peer]
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.link; l != nil {
		l.distance.setFar(far)
		l.publishDistance()
	}
}

// TestFar checks that long payload goes to a far peer by single copy, except while the ring is tried.
func TestFar(t *testing.T) {
	a, b := exposingBy(t, Config{Pipelined: true})
	a.verdict(1, true)
	if n := a.LongPayload(1); n != LongPayload(a.cfg.Ring) {
		t.Errorf("packets with %d bytes are exposed", n)
	}
	p := exposedPayload(0, 1, 1, MaxPayload)
	if x := deliver(t, a, b, p); x.RemoteBytes != MaxPayload {
		t.Errorf("%d bytes arrived, %d are away", len(x.Bytes), x.RemoteBytes)
	}
	p = advertising(0, 1, 2, maxSingleCopy)
	x, dst := deliver(t, a, b, p), make([]byte, maxSingleCopy)
	if x.Advertised == 0 || !b.Get(0, x.Advertised, dst) || !bytes.Equal(dst, p.Advertised) {
		t.Error("it is not taken from a far peer")
	}
	a.peers[1].link.distance.exposedCount = exposedPerTrial
	if n := a.LongPayload(1); n != 0 {
		t.Errorf("in a trial, packets with %d bytes are exposed", n)
	}
	p = exposedPayload(0, 1, 3, MaxPayload)
	if x := deliver(t, a, b, p); x.RemoteBytes != 0 || !bytes.Equal(x.Bytes, whole(p)) {
		t.Errorf("in a trial, %d bytes arrived, %d are away", len(x.Bytes), x.RemoteBytes)
	}
	if x := deliver(t, a, b, advertising(0, 1, 4, maxSingleCopy)); x.Advertised != 0 {
		t.Error("in a trial, a message is advertised")
	}
	p = exposedPayload(0, 1, 5, 2*MaxPayload) // cut before the trial
	if x := deliver(t, a, b, p); x.RemoteBytes != 2*MaxPayload {
		t.Errorf("%d bytes arrived, %d are away", len(x.Bytes), x.RemoteBytes)
	}
}
