package shm

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// advertising returns a packet that announces a message of n equal bytes, and advertises it.
func advertising(src, dst int, number uint32, n int) mpe.Packet {
	p := transporttest.Packet(src, dst, number, 0)
	p.Advertised, p.Exposed = bytes.Repeat([]byte{byte(number)}, n), uint64(number)
	return p
}

// TestGet copies whole messages and beginnings of messages, in any order. Each can be copied once.
func TestGet(t *testing.T) {
	a, b := exposing(t)
	lengths := []int{1, 100, MaxPayload, maxSingleCopy}
	var adverts []uint64
	var messages []mpe.Packet
	for i, n := range lengths {
		p := advertising(0, 1, uint32(i+1), n)
		x := deliver(t, a, b, p)
		if x.RemoteBytes != 0 || x.Advertised == 0 || !bytes.Equal(x.Bytes, p.Header[:]) {
			t.Fatalf("%d bytes: %+v", n, x)
		}
		adverts, messages = append(adverts, x.Advertised), append(messages, p)
	}
	for i := len(lengths) - 1; i >= 0; i-- {
		n, o := lengths[i], adverts[i]
		for name, wrong := range map[string]bool{
			"too much":       b.Get(0, o, make([]byte, n+1)),
			"none":           b.Get(0, 0, make([]byte, n)),
			"of another":     b.Get(0, o+1<<20, make([]byte, n)),
			"of no rank":     b.Get(-1, o, make([]byte, n)),
			"of the rank":    b.Get(1, o, make([]byte, n)),
			"of another way": a.Get(1, o, make([]byte, n)),
		} {
			if wrong {
				t.Errorf("%d bytes, %s: it is taken", n, name)
			}
		}
		dst := make([]byte, n-n/3)
		if !b.Get(0, o, dst) || !bytes.Equal(dst, messages[i].Advertised[:len(dst)]) {
			t.Errorf("%d bytes were not taken", n)
		}
		if b.Get(0, o, dst) {
			t.Errorf("%d bytes were taken twice", n)
		}
	}
	a.Invalidate(1, 1)
	x := deliver(t, a, b, advertising(0, 1, 1, 100))
	a.Invalidate(1, 1)
	if b.Get(0, x.Advertised, make([]byte, 100)) {
		t.Error("a canceled message was copied")
	}
	if x := deliver(t, a, b, advertising(0, 1, 9, maxSingleCopy+1)); x.Advertised != 0 {
		t.Error("too much is advertised")
	}
	p := advertising(0, 1, 9, 100)
	p.Exposed = 0
	if x := deliver(t, a, b, p); x.Advertised != 0 {
		t.Error("a message that cannot be canceled is advertised")
	}
}

// TestNoAdverts checks that nothing is advertised if either side has disabled single copies, and that such a
// side takes nothing from a peer that advertises anyway.
func TestNoAdverts(t *testing.T) {
	t.Setenv(EnvSingleCopy, "auto")
	m := transporttest.Map(t, 2)
	for off := range 3 {
		var conns [2]*Conn
		for rank := range conns {
			conns[rank] = listen(t, Config{Rank: rank, Map: m, NoSingleCopy: rank == off || off == 2})
		}
		batch := make([]mpe.RxPacket, 1)
		for _, c := range conns {
			if n, err := c.Recv(batch); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		for _, anyway := range []bool{false, true} {
			p := advertising(0, 1, 1, 100)
			conns[0].peers[1].link.canExpose = anyway
			if x := deliver(t, conns[0], conns[1], p); x.Advertised != 0 || !bytes.Equal(x.Bytes, p.Header[:]) {
				t.Errorf("off at %d, anyway: %v: %+v", off, anyway, x)
			}
		}
		for _, c := range conns {
			c.Close()
		}
	}
}

// TestAdvertsEndWithTheLink checks that adverts end together with their link, on both sides, and are not
// mistaken for adverts of the next link.
func TestAdvertsEndWithTheLink(t *testing.T) {
	a, b := exposing(t)
	x := deliver(t, a, b, advertising(0, 1, 1, 100))
	l := a.peers[1].link
	l.conn.Close()
	batch := make([]mpe.RxPacket, 1)
	for _, c := range []*Conn{a, b} {
		if n, err := c.nap(batch); n != 1 || err != nil || batch[0].Kind != mpe.RxConnected {
			t.Fatalf("%d, %v, %+v", n, err, batch[0])
		}
	}
	y := deliver(t, a, b, advertising(0, 1, 2, 100))
	dst := make([]byte, 100)
	if b.Get(0, x.Advertised, dst) {
		t.Error("a message advertised over another link was copied")
	}
	if l.out.adverts.usedSlots != 0 {
		t.Error("the old link has advertised buffers")
	}
	if !b.Get(0, y.Advertised, dst) || bytes.Count(dst, []byte{2}) != 100 {
		t.Error("a message advertised over this link was not copied")
	}
}

// TestGetUnreadable checks that memory that is not resident is not copied, and that the link survives.
func TestGetUnreadable(t *testing.T) {
	a, b := exposing(t)
	memory, err := unix.Mmap(-1, 0, MinSingleCopy, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	p := advertising(0, 1, 1, 0)
	p.Advertised = memory
	x := deliver(t, a, b, p)
	y := deliver(t, a, b, advertising(0, 1, 2, 100))
	if err := unix.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	if b.Get(0, x.Advertised, make([]byte, MinSingleCopy)) {
		t.Error("memory was read that is not there")
	}
	if !b.Get(0, y.Advertised, make([]byte, 100)) {
		t.Error("resident memory is no longer copied")
	}
	if linked, _ := b.Link(0); !linked {
		t.Error("the link is closed")
	}
}

// TestInvalidateAdvertsRace cancels adverts at any time and immediately overwrites the memory. A copy must
// either equal the advertised message or fail.
func TestInvalidateAdvertsRace(t *testing.T) {
	a, b := exposing(t)
	const messages, size = 3000, 64 << 10
	failed := make(chan error, 1)
	go func() {
		batch, dst := make([]mpe.RxPacket, 8), make([]byte, size)
		taken := 0
		for next := uint32(1); next <= messages; {
			n, err := b.Poll(batch, nil)
			if err != nil {
				failed <- err
				return
			}
			if n == 0 {
				runtime.Gosched()
			}
			for i := range batch[:n] {
				if b.Get(0, batch[i].Advertised, dst) {
					taken++
					if bytes.Count(dst, []byte{byte(next)}) != size {
						failed <- fmt.Errorf("message %d differs from the advertised one", next)
						return
					}
				}
				next++
			}
		}
		if taken < messages/3 {
			failed <- fmt.Errorf("only %d of %d messages were taken", taken, messages)
			return
		}
		t.Logf("%d of %d messages were taken", taken, messages)
		failed <- nil
	}()
	message := make([]byte, size)
	p := transporttest.Packet(0, 1, 1, 0)
	for number := uint32(1); number <= messages; {
		for i := range message {
			message[i] = byte(number)
		}
		p.Advertised, p.Exposed = message, uint64(number)
		n, err := a.SendPackets(1, []mpe.Packet{p})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			runtime.Gosched()
			continue
		}
		// Every other one stays until it has been taken.
		state := slotAt(a.peers[1].link.out.adverts.slots, 0)
		for spins := number % 20 * 1000; number%2 == 0 || spins > 0; spins-- {
			if state.Load()%statesPerAdvert == stateCopied || len(failed) > 0 {
				break
			}
			if number%2 == 0 {
				runtime.Gosched()
			}
		}
		a.Invalidate(1, uint64(number))
		number++
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// advertiseAll advertises as many messages as possible, each from separate memory, and then waits to be killed.
func advertiseAll(c *Conn) error {
	batch := make([]mpe.RxPacket, 1)
	var memory [advertSlots + 1][]byte
	for n := uint32(1); n <= advertSlots; {
		p := advertising(1, 0, n, victimDescriptor)
		sent, err := c.SendPackets(0, []mpe.Packet{p})
		if err == nil {
			_, err = c.Poll(batch, nil)
		}
		if err != nil {
			return err
		}
		memory[n] = p.Advertised
		n += uint32(sent)
	}
	for {
		if _, err := c.nap(batch); err != nil {
			return err
		}
		runtime.KeepAlive(&memory)
	}
}

// TestAdvertiserStoppedAndKilled checks that the adverts of a process can be copied while it is stopped. After
// it was killed they cannot, whether the receiver has noticed its end or not.
func TestAdvertiserStoppedAndKilled(t *testing.T) {
	exposing(t)
	m := transporttest.Map(t, 2)
	c := listen(t, Config{Rank: 0, Map: m})
	cmd, _ := startVictim(t, fmt.Sprint(m.Addr(0), ",", m.Addr(1)), advertiser)
	batch, dst := make([]mpe.RxPacket, 8), make([]byte, victimDescriptor)
	var adverts []uint64
	for len(adverts) < advertSlots {
		n, err := c.nap(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range batch[:n] {
			if a.Kind == mpe.RxDatagram {
				adverts = append(adverts, a.Advertised)
			}
		}
	}
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(err, status)
	}
	for i, o := range adverts[:advertSlots/2] {
		if !c.Get(1, o, dst) || bytes.Count(dst, []byte{byte(i + 1)}) != victimDescriptor {
			t.Fatalf("message %d was not taken", i+1)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	for i, o := range adverts[advertSlots/2:] {
		if c.Get(1, o, dst) {
			t.Fatalf("message %d of the dead was taken", advertSlots/2+i+1)
		}
	}
}
