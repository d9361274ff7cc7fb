package shm

import (
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// sharing returns two Conns with one slot in use.
func sharing(t *testing.T) (a, b *Conn) {
	t.Helper()
	a, b = polled(t)
	for _, c := range []*Conn{a, b} {
		c.Clear(1, 0)
		c.Use(0, 7)
	}
	return a, b
}

// rung reports whether the bell of a sleeping Conn was rung.
func (c *Conn) rung(t *testing.T) bool {
	t.Helper()
	bell := []unix.PollFd{{Fd: int32(c.Wakeup()), Events: unix.POLLIN}}
	n, err := unix.Poll(bell, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// TestAwaitAndSleep has three events: one rank publishes, the other calls Await, and the other's poller sleeps.
// It checks that the completed Await is reported in whatever order they occur.
func TestAwaitAndSleep(t *testing.T) {
	const publishes, awaits, sleeps = 'p', 'a', 's'
	for _, order := range []string{"pas", "psa", "aps", "asp", "spa", "sap", "spsa"} {
		t.Run(order, func(t *testing.T) {
			a, b := sharing(t)
			asleep := false
			for _, event := range order {
				switch event {
				case publishes:
					b.Publish(0, 1, []int{0, 1})
				case awaits:
					a.Await(1, 0, 1)
				case sleeps:
					asleep = a.Sleep()
				}
			}
			if asleep && !a.rung(t) {
				t.Error("it sleeps")
			}
			batch := make([]mpe.RxPacket, 4)
			if n, err := a.Poll(batch, nil); n != 1 || err != nil || batch[0].Kind != mpe.RxPublished ||
				batch[0].Ticket != 0 {
				t.Errorf("%d, %v, %+v", n, err, batch[0])
			}
		})
	}
}

// TestAwaitBesideSleep awaits data from another rank in one goroutine, while another goroutine polls and
// sleeps. No report may be lost.
func TestAwaitBesideSleep(t *testing.T) {
	const rounds = 20000
	a, b := sharing(t)
	reported := make(chan struct{}, 1)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		batch := make([]mpe.RxPacket, 4)
		for {
			n, err := a.Recv(batch)
			if err != nil {
				return
			}
			for _, p := range batch[:n] {
				if p.Kind == mpe.RxPublished {
					select {
					case reported <- struct{}{}:
					default:
					}
				}
			}
		}
	})
	defer a.Close()
	begin := make(chan uint64)
	defer close(begin)
	all.Go(func() {
		for sequence := range begin {
			b.Publish(0, sequence, []int{0, 1})
		}
	})
	for i := range uint64(rounds) {
		begin <- i + 1
		for a.State(1, 0, 0).Sequence < i+1 {
			if i%2 == 0 { // else the other goroutines run first
				runtime.Gosched()
			}
			a.Await(1, 0, i+1)
			<-reported
		}
	}
}

// TestWokenByLink checks that a peer that went to sleep without a link is woken when there is one, because an
// earlier publish could not wake it.
func TestWokenByLink(t *testing.T) {
	m := transporttest.Map(t, 2)
	c := listen(t, Config{Rank: 1, Map: m})
	bell, doorbellFD, shared, memory := handles(t)
	page, err := sharedmem.Map(doorbellFD, doorbellLen)
	if err != nil {
		t.Fatal(err)
	}
	defer sharedmem.Unmap(page)
	conn := connect(t, m, 1)
	defer conn.Close()
	if err := sendHello(conn,
		hello{purpose: requestLink, src: 0, dst: 1, ring: MinRing,
			handles: []int{bell, doorbellFD, shared, memory}}); err != nil {
		t.Fatal(err)
	}
	h, err := receiveHello(conn)
	if err != nil {
		t.Fatal(err)
	}
	defer closeHandles(h.handles)
	wordAt(page).Store(1)
	c.Publish(0, 1, []int{0})
	if err := sendHello(conn, hello{purpose: linkReady, src: 0, dst: 1}); err != nil {
		t.Fatal(err)
	}
	rung := []unix.PollFd{{Fd: int32(bell), Events: unix.POLLIN}}
	if n, err := unix.Poll(rung, int(transporttest.Timeout.Milliseconds())); n != 1 || err != nil {
		t.Errorf("it sleeps on: %d, %v", n, err)
	}
}
