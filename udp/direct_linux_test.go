package udp

import (
	"bytes"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/transporttest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// direct receives into buf until it has so many bytes, and returns them in order,
// and how many of them were already where they belong.
func direct(t *testing.T, c *Conn, head int, buf []byte, want int) (got []byte, inPlace int) {
	t.Helper()
	batch := make([]mpe.RxPacket, 64)
	at := 0 // where the next payload belongs
	for len(got) < want {
		n, err := c.PollInto(batch, mpe.Placement{Head: head, Buf: buf[min(at, len(buf)):]})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range split(batch[:n]) {
			if a.Kind != mpe.RxDatagram || a.Peer != 0 {
				t.Fatalf("%v from %d", a.Kind, a.Peer)
			}
			got = append(append(got, a.Bytes...), a.Rest...)
			payload := a.Rest
			if head == 0 {
				payload = a.Bytes
			}
			if at < len(buf) && len(payload) > 0 && &payload[0] == &buf[at] {
				inPlace += len(payload)
			}
			at += len(a.Bytes) + len(a.Rest) - head
		}
	}
	return got, inPlace
}

// split gives every datagram an RxPacket of its own.
func split(batch []mpe.RxPacket) (all []mpe.RxPacket) {
	for _, a := range batch {
		if a.Each == 0 {
			all = append(all, a)
			continue
		}
		for rest := a.Bytes; len(rest) > 0; rest = rest[min(a.Each, len(rest)):] {
			one := a
			one.Bytes, one.Each = rest[:min(a.Each, len(rest))], 0
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
					t.Fatalf("%d words into %d bytes: what arrived is not what was sent", words, room)
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
