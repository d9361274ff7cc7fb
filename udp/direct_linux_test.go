package udp

import (
	"bytes"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// direct receives into buf until it has received want bytes. It returns these bytes in order, and the number of bytes
// that were received in place.
func direct(t *testing.T, c *Conn, head int, buf []byte, want int) (got []byte, inPlace int) {
	t.Helper()
	batch := make([]mpe.RxPacket, 64)
	at := 0 // offset of the next payload
	for len(got) < want {
		var all mpe.Placements
		all.Set(mpe.Placement{HeaderLen: head, Buf: buf[min(at, len(buf)):]})
		n, err := c.Poll(batch, &all)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range split(batch[:n]) {
			if a.Kind != mpe.RxDatagram || a.Peer != 0 {
				t.Fatalf("%v from %d", a.Kind, a.Peer)
			}
			got = append(append(got, a.Bytes...), a.Tail...)
			payload := a.Tail
			if head == 0 {
				payload = a.Bytes
			}
			if at < len(buf) && len(payload) > 0 && &payload[0] == &buf[at] {
				inPlace += len(payload)
			}
			at += len(a.Bytes) + len(a.Tail) - head
		}
	}
	return got, inPlace
}

// split returns one RxPacket for each datagram.
func split(batch []mpe.RxPacket) (all []mpe.RxPacket) {
	for _, a := range batch {
		if a.DatagramLen == 0 {
			all = append(all, a)
			continue
		}
		for rest := a.Bytes; len(rest) > 0; rest = rest[min(a.DatagramLen, len(rest)):] {
			one := a
			one.Bytes, one.DatagramLen = rest[:min(a.DatagramLen, len(rest))], 0
			all = append(all, one)
		}
	}
	return all
}

func TestDirectReceive(t *testing.T) {
	eachSocket(t, func(t *testing.T, open func(Config) (*Conn, error)) {
		m := transporttest.Map(t, 2)
		near, err := open(Config{Map: m, Large: func(int) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, err := open(Config{Map: m, Rank: 1, Large: func(int) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		if !far.CanPoll() {
			t.Skip("this socket cannot be polled")
		}
		for _, words := range []int{1, 346, 1000, 20_000, 354 * 45, 100_000} {
			header, payload := dataPacket(words)
			if err := near.SendData(1, header, payload, protocol.CPUShape()); err != nil {
				t.Fatal(err)
			}
			all := append(bytes.Clone(header), payload...)
			for _, room := range []int{len(all), len(all) / 2, len(all) - 1, 100} {
				got, in := direct(t, far, 0, make([]byte, room), len(all))
				if !bytes.Equal(got, all) {
					t.Fatalf("%d words into %d bytes: the received message differs from the sent one", words, room)
				}
				if room == len(all) && in != len(all) {
					t.Errorf("%d words: %d of %d bytes are where they belong", words, in, len(all))
				}
				if err := near.SendData(1, header, payload, protocol.CPUShape()); err != nil {
					t.Fatal(err)
				}
			}
			direct(t, far, 0, nil, len(all))
		}
	})
}

// TestDirectReceiveOfSeveralPeers checks that payload expected from several peers is received in place, in whatever
// order it arrives, and that unexpected payload is not.
func TestDirectReceiveOfSeveralPeers(t *testing.T) {
	eachSocket(t, func(t *testing.T, open func(Config) (*Conn, error)) {
		m := transporttest.Map(t, 4)
		var conns [4]*Conn
		for rank := range conns {
			c, err := open(Config{Map: m, Rank: rank, Large: func(int) bool { return true }})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			conns[rank] = c
		}
		here := conns[3]
		if !here.CanPoll() {
			t.Skip("this socket cannot be polled")
		}
		// Neither rank 2 nor another message of rank 1 is expected.
		packet := func(rank int, message uint32) (p mpe.Packet) {
			p.Payload = bytes.Repeat([]byte{byte(rank + 1)}, 40_000)
			h := protocol.ExtHeader{
				Dst: 3, Src: uint32(rank), Type: protocol.Data, Session: 7, PeerSession: 9, Number: 1, Message: message,
				Length: 40_000,
			}
			protocol.PutExtended(p.Header[:], &h, p.Payload)
			return p
		}
		var all mpe.Placements
		var bufs [2][]byte
		for rank := range bufs {
			bufs[rank] = make([]byte, 50_000)
			all.Set(mpe.Placement{Peer: rank, HeaderLen: protocol.ExtHeaderLen, Message: 5, Buf: bufs[rank]})
		}
		batch := make([]mpe.RxPacket, 8)
		for _, x := range []struct {
			from    int
			message uint32
			placed  bool
		}{{1, 5, true}, {0, 5, true}, {2, 5, false}, {1, 6, false}, {1, 5, true}} {
			for i := range bufs {
				clear(bufs[i])
			}
			p := packet(x.from, x.message)
			if n, err := conns[x.from].SendPackets(3, []mpe.Packet{p}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			n := 0
			for n == 0 {
				var err error
				if n, err = here.Poll(batch, &all); err != nil {
					t.Fatal(err)
				}
			}
			a := batch[0]
			if got := append(bytes.Clone(a.Bytes), a.Tail...); n != 1 || a.Peer != x.from ||
				!bytes.Equal(got, append(p.Header[:], p.Payload...)) {
				t.Fatalf("%+v: %d packets, one from %d with %d bytes", x, n, a.Peer, len(got))
			}
			if placed := x.from < 2 && len(a.Tail) > 0 && &a.Tail[0] == &bufs[x.from][0]; placed != x.placed {
				t.Errorf("%+v: where it belongs: %v", x, placed)
			}
			if !x.placed && (bufs[0][0] != 0 || bufs[1][0] != 0) {
				t.Errorf("%+v: it was written to where another belongs", x)
			}
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = here.Poll(batch, &all) }); n != 0 {
			t.Errorf("%v allocations of a poll that finds nothing", n)
		}
	})
}
