package shm

import (
	"runtime"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// polled returns two linked Conns that only the test polls.
func polled(t testing.TB) (a, b *Conn) { return polledBy(t, Config{}) }

func polledBy(t testing.TB, cfg Config) (a, b *Conn) {
	t.Helper()
	cfg.Map = transporttest.Map(t, 2)
	a = listen(t, cfg)
	cfg.Rank = 1
	b = listen(t, cfg)
	batch := make([]mpe.RxPacket, 4)
	for _, c := range []*Conn{a, b} {
		if n, err := c.Recv(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxConnected {
			t.Fatalf("%d, %v, %+v", n, err, batch[0])
		}
	}
	return a, b
}

// wait polls until a packet arrives.
func (c *Conn) wait(batch []mpe.RxPacket) int {
	for {
		if n, err := c.Poll(batch, nil); n > 0 || err != nil {
			return n
		}
	}
}

// BenchmarkPingPong measures round trips of a packet of 76 bytes between two threads.
func BenchmarkPingPong(b *testing.B) {
	x, y := polled(b)
	var other sync.WaitGroup
	other.Go(func() {
		runtime.LockOSThread()
		batch, packets := make([]mpe.RxPacket, 64), []mpe.Packet{transporttest.Packet(1, 0, 1, 4)}
		for range b.N {
			y.wait(batch)
			if n, _ := y.SendPackets(0, packets); n != 1 {
				panic("not taken")
			}
		}
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	batch, packets := make([]mpe.RxPacket, 64), []mpe.Packet{transporttest.Packet(0, 1, 1, 4)}
	for range b.N {
		if n, _ := x.SendPackets(1, packets); n != 1 {
			b.Fatal("not taken")
		}
		x.wait(batch)
	}
	other.Wait()
}

// BenchmarkStream measures the transfer of packets of 32 KiB that are copied into the ring and out of it.
func BenchmarkStream(b *testing.B) {
	x, y := polled(b)
	b.SetBytes(MaxPayload)
	const message = 4 << 20
	src, dst := make([]byte, message), make([]byte, message)
	for i := range src {
		src[i], dst[i] = 1, 2
	}
	var other sync.WaitGroup
	other.Go(func() {
		runtime.LockOSThread()
		batch := make([]mpe.RxPacket, 64)
		for done := 0; done < b.N; {
			n := y.wait(batch)
			for _, a := range batch[:n] {
				copy(dst[done*MaxPayload%message:], a.Bytes[72:])
				done++
			}
		}
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	packet := []mpe.Packet{transporttest.Packet(0, 1, 1, 0)}
	for i := 0; i < b.N; {
		at := i * MaxPayload % message
		packet[0].Payload = src[at : at+MaxPayload]
		n, err := x.SendPackets(1, packet)
		if err != nil {
			b.Fatal(err)
		}
		i += n
	}
	other.Wait()
}
