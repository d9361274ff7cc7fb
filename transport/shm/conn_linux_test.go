package shm

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

func listen(t testing.TB, cfg Config) *Conn {
	t.Helper()
	c, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// pair returns the connected ends of ranks 0 and 1. The ranks may start in any order.
func pair(t testing.TB, cfg Config) (a, b *transporttest.End) {
	t.Helper()
	if cfg.Map == nil {
		cfg.Map = transporttest.Map(t, 2)
	}
	var ends [2]*transporttest.End
	for rank := range ends {
		cfg.Rank = rank
		ends[rank] = transporttest.Start(t, listen(t, cfg))
	}
	ends[0].WaitConnected(t, 1)
	ends[1].WaitConnected(t, 0)
	return ends[0], ends[1]
}

func TestPackets(t *testing.T) {
	transporttest.RunPackets(t, transporttest.PacketKind{
		Pair: func(t *testing.T) (_, _ *transporttest.End) {
			// The test sends lists of packets that do not fit in a ring of the default size.
			return pair(t, Config{Ring: 4 << 20})
		},
		MaxPayload: MaxPayload,
	})
}

// TestRestart checks that ranks find each other whichever starts first, and again after one of them has
// restarted.
func TestRestart(t *testing.T) {
	m := transporttest.Map(t, 3)
	ends := make([]*transporttest.End, 3)
	start := func(rank int) {
		ends[rank] = transporttest.Start(t, listen(t, Config{Rank: rank, Map: m}))
	}
	exchange := func(a, b int) {
		t.Helper()
		for _, way := range [][2]int{{a, b}, {b, a}} {
			p := transporttest.Packet(way[0], way[1], 7, 100)
			ends[way[0]].SendAllPackets(t, way[1], []mpe.Packet{p})
			ends[way[1]].CheckPacket(t, way[0], p)
		}
	}
	connect := func(a, b int) {
		t.Helper()
		ends[a].WaitConnected(t, b)
		ends[b].WaitConnected(t, a)
		exchange(a, b)
	}
	start(1)
	start(2)
	connect(1, 2)
	start(0)
	for _, other := range []int{1, 2} {
		if a := ends[0].Next(t); a.Kind != mpe.RxConnected {
			t.Fatalf("%+v", a)
		}
		ends[other].WaitConnected(t, 0)
	}
	exchange(0, 1)
	exchange(0, 2)
	for _, rank := range []int{0, 2, 1} {
		other := (rank + 1) % 3
		ends[rank].Close()
		start(rank)
		for range 2 {
			if a := ends[rank].Next(t); a.Kind != mpe.RxConnected {
				t.Fatalf("%+v", a)
			}
		}
		for other := range ends {
			if other != rank {
				ends[other].WaitConnected(t, rank)
			}
		}
		exchange(rank, other)
	}
}

// TestDrain checks that packets sent before a rank closes still arrive.
func TestDrain(t *testing.T) {
	m := transporttest.Map(t, 2)
	a, b := listen(t, Config{Rank: 0, Map: m}), listen(t, Config{Rank: 1, Map: m})
	batch := make([]mpe.RxPacket, 4)
	for _, c := range []*Conn{a, b} {
		if n, err := c.Recv(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxConnected {
			t.Fatalf("%d, %v, %+v", n, err, batch[0])
		}
	}
	packets := make([]mpe.Packet, 10)
	for i := range packets {
		packets[i] = transporttest.Packet(0, 1, uint32(i), 9)
	}
	if n, err := a.SendPackets(1, packets); n != len(packets) || err != nil {
		t.Fatal(n, err)
	}
	a.Close()
	again := listen(t, Config{Rank: 0, Map: m})
	transporttest.Start(t, again).WaitConnected(t, 1)
	end := transporttest.Start(t, b)
	for _, p := range packets {
		end.CheckPacket(t, 0, p)
	}
	end.WaitConnected(t, 0) // after them
}

func TestAddressInUse(t *testing.T) {
	m := transporttest.Map(t, 2)
	c := listen(t, Config{Rank: 1, Map: m})
	_, err := Listen(Config{Rank: 1, Map: m})
	var le *ListenError
	if !errors.As(err, &le) || !errors.Is(err, syscall.EADDRINUSE) || le.PID != os.Getpid() ||
		!strings.Contains(err.Error(), "rank 1 cannot share memory as "+m.Addr(1).String()+": process ") ||
		!strings.Contains(err.Error(), "is that rank already: stop it") {
		t.Errorf("got %v", err)
	}
	c.Close()
	listen(t, Config{Rank: 1, Map: m})
}

func TestListenErrors(t *testing.T) {
	m := transporttest.Map(t, 2)
	for _, tt := range []struct {
		cfg  Config
		text string
	}{
		{Config{Rank: 2, Map: m}, "rank 2 is not in the rank map"},
		{Config{Rank: 0}, "rank 0 is not in the rank map"},
		{Config{Map: m, Ring: 1 << 17}, "a ring of 131072 bytes: must be a power of two from 262144 to 67108864, or 0"},
		{Config{Map: m, Ring: 3 << 19}, "a ring of 1572864 bytes"},
		{Config{Map: m, Ring: MaxRing * 2}, "a ring of 134217728 bytes"},
	} {
		if _, err := Listen(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("got %v, want %q", err, tt.text)
		}
	}
	for _, tt := range []struct {
		err  ListenError
		text string
	}{
		{ListenError{Rank: 1, Addr: m.Addr(1), Taken: true}, "another process is that rank already: stop it"},
		{ListenError{Rank: 1, Addr: m.Addr(1), Err: ErrUnsupported}, "requires Linux; set transport: udp"},
	} {
		if !strings.Contains(tt.err.Error(), tt.text) {
			t.Errorf("%v does not say %q", &tt.err, tt.text)
		}
	}
}

func TestWrongUse(t *testing.T) {
	m := transporttest.MapOf(t, transporttest.FreeAddr(t), transporttest.FreeAddr(t), transporttest.FreeAddr(t))
	entries := m.Entries()
	entries[2].Kind = rankmap.FPGA
	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	c := listen(t, Config{Rank: 0, Map: m})
	if n, err := c.SendPackets(1, []mpe.Packet{transporttest.Packet(0, 1, 1, 5)}); n != 0 || err != nil {
		t.Errorf("without a peer %d packets went, %v", n, err)
	}
	_, fpga := c.SendPackets(2, []mpe.Packet{transporttest.Packet(0, 2, 1, 5)})
	_, long := c.SendPackets(1, []mpe.Packet{transporttest.Packet(0, 1, 1, MaxPayload+1)})
	_, nothing := c.Recv(nil)
	c.Close()
	_, closed := c.SendPackets(1, []mpe.Packet{transporttest.Packet(0, 1, 1, 5)})
	for _, tt := range []struct {
		err, cause error
		text       string
	}{
		{fpga, ErrNoPeer, "rank 0 cannot send to rank 2 (" + m.Addr(2).String() +
			"): this transport does not reach that rank"},
		{long, ErrBadPacket, "packet 1 of 1 has 32769 bytes of payload; at most 32768 are allowed"},
		{nothing, nil, "Recv into an empty batch"},
		{closed, mpe.ErrTransportClosed, ""},
	} {
		if tt.err == nil || tt.cause != nil && !errors.Is(tt.err, tt.cause) ||
			!strings.Contains(tt.err.Error(), tt.text) {
			t.Errorf("got %v, want %q", tt.err, tt.text)
		}
	}
	c = listen(t, Config{Rank: 0, Map: m})
	var se *SendError
	if _, err := c.SendPackets(2, []mpe.Packet{transporttest.Packet(0, 2, 1, 5)}); !errors.As(err, &se) ||
		se.Peer != 2 {
		t.Errorf("SendPackets: %v", err)
	}
	if linked, err := c.Link(2); linked || !errors.Is(err, ErrNoPeer) {
		t.Errorf("%v, %v", linked, err)
	}
}

// TestClose tests Poll, Sleep and Wakeup after Close.
func TestClose(t *testing.T) {
	m := transporttest.Map(t, 2)
	c := listen(t, Config{Rank: 0, Map: m})
	if c.Wakeup() < 0 || !c.CanPoll() || !c.Sleep() {
		t.Fatal("it cannot sleep")
	}
	recv := make(chan error, 1)
	go func() {
		_, err := c.Recv(make([]mpe.RxPacket, 1))
		recv <- err
	}()
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-recv; !errors.Is(err, mpe.ErrTransportClosed) {
		t.Errorf("Recv in progress: %v", err)
	}
	if _, err := c.Poll(make([]mpe.RxPacket, 1), nil); !errors.Is(err, mpe.ErrTransportClosed) {
		t.Errorf("Poll: %v", err)
	}
	if c.Wakeup() != -1 || c.Sleep() {
		t.Error("it can sleep")
	}
}
