package shm

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// victimDescriptor is the payload length in bytes that the victims expose and fetch.
const victimDescriptor = 40000

// number returns the number of the received packet.
func number(a *mpe.RxPacket) uint32 {
	h, _, _ := protocol.ParseExtendedHeader(a.Bytes)
	return h.Number
}

// exposeAll exposes packets endlessly, each from separate memory, and never cancels one.
func exposeAll(c *Conn) error {
	batch := make([]mpe.RxPacket, 8)
	var memory [16][]byte
	for n := uint32(1); ; {
		p := transporttest.Packet(1, 0, n, 0)
		p.Payload, p.Exposed = bytes.Repeat([]byte{byte(n)}, victimDescriptor), uint64(n)
		sent := 0
		for sent == 0 {
			var err error
			if sent, err = c.SendPackets(0, []mpe.Packet{p}); err == nil {
				_, err = c.Poll(batch, nil)
			}
			if err != nil {
				return err
			}
		}
		memory[n%16] = p.Payload
		n++
		// Wait until all of it was fetched, so that the memory can be reused.
		for n%16 == 0 && c.exposed(0) > 0 {
			if _, err := c.Poll(batch, nil); err != nil {
				return err
			}
		}
		runtime.KeepAlive(&memory)
	}
}

// exposed returns the number of live descriptors to the peer.
func (c *Conn) exposed(peer int) int {
	c.Invalidate(peer, 1<<40)
	p := c.peers[peer]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == nil {
		return 0
	}
	return len(p.link.out.exposed)
}

// fetchAll fetches packets until one arrives through the ring. It fails if a payload differs from the exposed
// one. It prints the numbers of fetched and canceled packets.
func fetchAll(c *Conn) error {
	batch, dst := make([]mpe.RxPacket, 1), make([]byte, victimDescriptor)
	for got, lost := 0, 0; ; {
		if _, err := c.nap(batch); err != nil {
			return err
		}
		a := &batch[0]
		switch {
		case a.Kind != mpe.RxDatagram:
		case a.RemoteBytes == 0:
			return fmt.Errorf("%d got, %d lost", got, lost)
		case !c.Fetch(a, dst):
			lost++
		case bytes.Count(dst, []byte{byte(number(a))}) != victimDescriptor:
			return errors.New("the payload differs from the exposed one")
		default:
			got++
		}
	}
}

// TestExposerKilled kills a process while its memory is being read. Fetched payload must be as it was exposed,
// all other payload is lost, and no goroutine may wait.
func TestExposerKilled(t *testing.T) {
	exposing(t)
	m := transporttest.Map(t, 2)
	addrs := fmt.Sprint(m.Addr(0), ",", m.Addr(1))
	c := listen(t, Config{Rank: 0, Map: m})
	for life := range 3 {
		cmd, _ := startVictim(t, addrs, exposer)
		batch, dst := make([]mpe.RxPacket, 8), make([]byte, victimDescriptor)
		next, killed := uint32(1), false
		read := c.nap
		for !killed || len(c.inbox.links) > 0 {
			n, err := read(batch)
			if err != nil {
				t.Fatal(err)
			}
			for i := range batch[:n] {
				a := &batch[i]
				if a.Kind != mpe.RxDatagram {
					continue
				}
				if a.RemoteBytes != victimDescriptor || number(a) != next {
					t.Fatalf("start %d: packet %d, want %d; %d bytes are away", life, number(a), next, a.RemoteBytes)
				}
				if c.Fetch(a, dst) {
					if bytes.Count(dst, []byte{byte(next)}) != victimDescriptor {
						t.Fatalf("start %d: packet %d differs from the exposed one", life, next)
					}
				} else if !killed {
					t.Fatalf("start %d: packet %d was not to be had", life, next)
				}
				next++
			}
			if next > 200 && !killed {
				killed, read = true, func(batch []mpe.RxPacket) (int, error) { return c.Poll(batch, nil) }
				cmd.Process.Kill()
				// Do not wait for it: it may be about to exit.
			}
		}
		cmd.Wait()
	}
}

// TestFetcherStopped checks that a stopped receiver does not block a sender that needs its memory back, and does not
// see later writes to that memory.
func TestFetcherStopped(t *testing.T) {
	exposing(t)
	m := transporttest.Map(t, 2)
	c := listen(t, Config{Rank: 0, Map: m})
	cmd, said := startVictim(t, fmt.Sprint(m.Addr(0), ",", m.Addr(1)), fetcher)
	batch := make([]mpe.RxPacket, 1)
	if _, err := c.nap(batch); err != nil || batch[0].Kind != mpe.RxConnected {
		t.Fatalf("%v, %+v", err, batch[0])
	}
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(err, status)
	}
	const packets = 50
	var memory [packets + 1][]byte
	for n := uint32(1); n <= packets; n++ {
		p := exposedPayload(0, 1, n, victimDescriptor)
		memory[n] = p.Payload
		if sent, err := c.SendPackets(1, []mpe.Packet{p}); sent != 1 || err != nil {
			t.Fatal(sent, err)
		}
		if n%2 == 0 {
			c.Invalidate(1, uint64(n))
			clear(p.Payload)
		}
	}
	if sent, err := c.SendPackets(1, []mpe.Packet{transporttest.Packet(0, 1, packets+1, 5)}); sent != 1 || err != nil {
		t.Fatal(sent, err)
	}
	if err := cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if line, err := said.ReadString('\n'); line != "25 got, 25 lost\n" {
		t.Errorf("the receiver says %q, %v", line, err)
	}
	runtime.KeepAlive(&memory)
}
