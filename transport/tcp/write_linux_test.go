package tcp

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestPollFlushes checks that data that the kernel did not take immediately, even half a packet, is written
// once the kernel can take more: by a poll, when the descriptor is readable, or together with the next packets.
func TestPollFlushes(t *testing.T) {
	for name, next := range map[string]func(polled){
		"poll": func(c polled) { c.quiet() },
		"send": func(c polled) {
			if n, err := c.SendPackets(0, nil); n != 0 || err != nil {
				c.t.Fatal(n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPolled(t, 2, nil)
			conn := c.dialed(0)
			want := c.fill()
			if c.inbox.writersWaiting.Load() != 1 {
				t.Error("no goroutine is notified when there is space")
			}
			var got []byte
			piece := make([]byte, 99_999)
			for len(got) < len(want) {
				if l, _ := c.peers[0].currentLink(); c.outflow(l) > 0 && c.readable(0) {
					next(c)
				}
				conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				n, err := conn.Read(piece)
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal(err)
				}
				got = append(got, piece[:n]...)
			}
			if !bytes.Equal(got, want) {
				t.Error("the received data differs from the sent data")
			}
			if c.inbox.writersWaiting.Load() != 0 || !c.Sleep() || c.readable(0) {
				t.Error("nothing waits, and the descriptor is readable")
			}
		})
	}
}

// TestPollTinyQueue checks that the rest of a packet is queued even if it exceeds the limit.
func TestPollTinyQueue(t *testing.T) {
	c := newPolled(t, 2, func(cfg *Config) { cfg.SendQueue = 1 })
	conn := c.dialed(0)
	list := make([]mpe.Packet, 64)
	for i := range list {
		list[i] = transporttest.Packet(1, 0, uint32(i), 10_007)
	}
	var want []byte
	for {
		n, err := c.SendPackets(0, list)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list[:n] {
			want = append(append(want, p.Header[:]...), p.Payload...)
		}
		if n < len(list) {
			break
		}
	}
	end := transporttest.Start(t, c.Conn)
	got := make([]byte, len(want))
	readFull(t, conn, got)
	if !bytes.Equal(got, want) {
		t.Error("the received data differs from the sent data")
	}
	end.Close()
}

// TestPollClose checks that Close lets the peer read pending data, and ends a Poll in another goroutine.
func TestPollClose(t *testing.T) {
	c := newPolled(t, 2, nil)
	conn := c.dialed(0)
	want := c.fill()
	polled := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Poll(make([]mpe.RxPacket, 4), nil); err != nil {
				polled <- err
				return
			}
		}
	}()
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	got := make([]byte, len(want))
	readFull(t, conn, got)
	wantClosed(t, conn)
	conn.Close() // Close waits for that
	if !bytes.Equal(got, want) {
		t.Error("the received data differs from the sent data")
	}
	if err := errors.Join(<-closed, c.Close()); err != nil {
		t.Error(err)
	}
	if err := <-polled; !errors.Is(err, mpe.ErrTransportClosed) {
		t.Errorf("Poll ended with %v", err)
	}
	if n, err := c.SendPackets(0, nil); !errors.Is(err, mpe.ErrTransportClosed) {
		t.Errorf("%d packets went, %v", n, err)
	}
}

// TestPollCloseWithPeerThatIsStuck checks that Close does not wait forever for a peer that does not read.
func TestPollCloseWithPeerThatIsStuck(t *testing.T) {
	c := newPolled(t, 2, nil)
	c.dialed(0)
	c.fill()
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	select {
	case <-closed:
	case <-time.After(transporttest.Timeout):
		t.Fatal("Close waits forever")
	}
}

func TestNoAllocationsOfPolls(t *testing.T) {
	c := newPolled(t, 2, nil)
	conn := c.dialed(0)
	stream, packets := packetStream(0, 4000, 100)
	list := []mpe.Packet{transporttest.Packet(1, 0, 1, 0), transporttest.Packet(1, 0, 2, protocol.MaxStreamPayload)}
	batch, back := make([]mpe.RxPacket, 4), make([]byte, 1<<20)
	message := func() {
		write(t, conn, stream)
		for got := 0; got < len(packets); {
			n, err := c.Poll(batch, nil)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
		// This is more than the kernel takes.
		want := 0
		for l, _ := c.peers[0].currentLink(); c.outflow(l) == 0; {
			n, err := c.SendPackets(0, list)
			if n != len(list) || err != nil {
				t.Fatal(n, err)
			}
			want += 2*protocol.ExtHeaderLen + protocol.MaxStreamPayload
		}
		for got := 0; got < want; {
			n, err := conn.Read(back)
			if err != nil {
				t.Fatal(err)
			}
			got += n
			c.Poll(batch, nil)
		}
	}
	for range 5 { // until all buffers exist
		message()
	}
	if n := testing.AllocsPerRun(20, message); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
