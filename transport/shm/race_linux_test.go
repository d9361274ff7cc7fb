package shm

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// nap sleeps while there are no packets. It fails if none arrives for a long time.
func (c *Conn) nap(batch []mpe.RxPacket) (int, error) {
	for {
		if n, err := c.Poll(batch, nil); n > 0 || err != nil {
			return n, err
		}
		if !c.Sleep() {
			continue
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.Wakeup()), Events: unix.POLLIN}},
			int(transporttest.Timeout/time.Millisecond))
		if n == 0 && err == nil {
			return 0, errors.New("it was never woken")
		}
	}
}

// TestSleepRace checks that a sender wakes a receiver that is about to sleep, so that no packet remains in the
// ring. All peers send at once to a receiver that sleeps after every packet.
func TestSleepRace(t *testing.T) {
	const peers, each = 3, 2000
	m := transporttest.Map(t, peers+1)
	c := listen(t, Config{Rank: 0, Map: m})
	failed := make(chan error, peers)
	for rank := 1; rank <= peers; rank++ {
		p := listen(t, Config{Rank: rank, Map: m})
		go func() {
			batch := make([]mpe.RxPacket, 8)
			for number := uint32(0); number < each; {
				packet := transporttest.Packet(rank, 0, number, 20)
				n, err := p.SendPackets(0, []mpe.Packet{packet})
				if err != nil {
					failed <- err
					return
				}
				number += uint32(n)
				if n == 0 || number%4 == 0 { // wait for the answer, asleep
					if _, err := p.nap(batch); err != nil {
						failed <- fmt.Errorf("rank %d, packet %d: %w", rank, number, err)
						return
					}
				}
			}
			failed <- nil
		}()
	}
	next := make([]uint32, peers+1)
	batch := make([]mpe.RxPacket, 1)
	for got := 0; got < peers*each; {
		if _, err := c.nap(batch); err != nil {
			t.Fatalf("after %d packets: %v", got, err)
		}
		a := batch[0]
		if a.Kind == mpe.RxConnected {
			continue
		}
		p := transporttest.Packet(a.Peer, 0, next[a.Peer], 20)
		if a.Kind != mpe.RxDatagram || !bytes.Equal(a.Bytes, whole(p)) {
			t.Fatalf("rank %d: it is not packet %d", a.Peer, next[a.Peer])
		}
		next[a.Peer]++
		got++
		if next[a.Peer]%4 == 0 {
			if n, err := c.SendPackets(a.Peer, []mpe.Packet{p}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	for range peers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// TestManyPeers checks that Poll finds the one sender among many silent peers.
func TestManyPeers(t *testing.T) {
	const ranks = 40
	m := transporttest.Map(t, ranks)
	c := listen(t, Config{Rank: ranks - 1, Map: m})
	others := make([]*Conn, ranks-1)
	for rank := range others {
		others[rank] = listen(t, Config{Rank: rank, Map: m})
	}
	batch := make([]mpe.RxPacket, 3)
	for linked := 0; linked < len(others); {
		n, err := c.nap(batch)
		if err != nil {
			t.Fatal(err)
		}
		linked += n
	}
	for round := range 3 {
		for rank := range others {
			p := transporttest.Packet(rank, ranks-1, uint32(round), 8)
			for {
				n, err := others[rank].SendPackets(ranks-1, []mpe.Packet{p})
				if err != nil {
					t.Fatal(err)
				}
				if n == 1 {
					break
				}
				// Its side of the link is not ready yet.
				if _, err := others[rank].nap(batch); err != nil {
					t.Fatal(err)
				}
			}
			n, err := c.nap(batch)
			if err != nil || n != 1 || batch[0].Peer != rank || !bytes.Equal(batch[0].Bytes, whole(p)) {
				t.Fatalf("round %d, rank %d: %d, %v, %+v", round, rank, n, err, batch[0])
			}
		}
	}
}

// TestAllocs checks that sends and polls do not allocate.
func TestAllocs(t *testing.T) {
	a, b := polled(t)
	batch := make([]mpe.RxPacket, 64)
	packets := []mpe.Packet{transporttest.Packet(0, 1, 1, 4), transporttest.Packet(0, 1, 2, 20000)}
	if n := testing.AllocsPerRun(1000, func() {
		if n, err := a.SendPackets(1, packets); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := b.Poll(batch, nil); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := b.Poll(batch, nil); n != 0 || err != nil || !b.Sleep() {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBrokenLink checks that a link with invalid memory is ended, and that a new link is made.
func TestBrokenLink(t *testing.T) {
	a, b := polled(t)
	batch := make([]mpe.RxPacket, 4)
	good := transporttest.Packet(0, 1, 1, 4)
	if n, err := a.SendPackets(1, []mpe.Packet{good}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	p := a.peers[1]
	p.mu.Lock()
	wordAt(p.link.out.ring[p.link.out.pos:]).Store(hostile["all ones"])
	p.mu.Unlock()
	var kinds []mpe.RxKind
	for len(kinds) < 3 {
		n, err := b.nap(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range batch[:n] {
			kinds = append(kinds, x.Kind)
		}
	}
	if kinds[0] != mpe.RxDatagram || kinds[1] != mpe.RxBroken || kinds[2] != mpe.RxConnected {
		t.Errorf("%v arrived", kinds)
	}
	if n, err := a.nap(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxConnected {
		t.Fatal(n, err)
	}
	if n, err := a.SendPackets(1, []mpe.Packet{good}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := b.nap(batch); n != 1 || err != nil || !bytes.Equal(batch[0].Bytes, whole(good)) {
		t.Fatal(n, err)
	}
}

// TestPollWhileAsleep polls between Sleep and the arrival of a packet, and checks that this does not disturb a
// goroutine that waits for the bell: the bell rings, and stays readable until the next Sleep.
func TestPollWhileAsleep(t *testing.T) {
	a, b := polled(t)
	batch := make([]mpe.RxPacket, 4)
	rung := func() bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(b.Wakeup()), Events: unix.POLLIN}}, 0)
		return n == 1 && err == nil
	}
	p := []mpe.Packet{transporttest.Packet(0, 1, 1, 4)}
	for range 3 {
		if !b.Sleep() || rung() {
			t.Fatal("it does not sleep")
		}
		for range 2 {
			if n, err := b.Poll(batch, nil); n != 0 || err != nil {
				t.Fatal(n, err)
			}
		}
		if n, err := a.SendPackets(1, p); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if !rung() || b.Sleep() {
			t.Fatal("it sleeps on")
		}
		if n, err := b.Poll(batch, nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if !b.Sleep() || rung() {
		t.Error("the bell rings for a packet that was read")
	}
	b.inbox.doorbell.ring() // as a peer that was interrupted after it cleared the flag
	if !rung() || !b.Sleep() || rung() {
		t.Error("the bell that was rung late rings on")
	}
}
