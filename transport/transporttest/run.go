package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Kind is a kind of transport.
type Kind struct {
	// Map returns the map of n ranks. If it is nil, the function Map does.
	Map func(t testing.TB, n int) *rankmap.Map
	// Listen opens the transport of a rank.
	Listen func(m *rankmap.Map, rank int) (mpe.Transport, error)
	// FromUnknown sends to the address to, from an address that is not in any rank map. It returns that
	// address, and the kind of packet that must arrive.
	FromUnknown func(t *testing.T, from netip.Addr, to netip.AddrPort) (netip.AddrPort, mpe.RxKind)
}

// Run tests that a kind of transport implements mpe.Transport correctly.
func Run(t *testing.T, kind Kind) {
	t.Run("headers", kind.testHeaders)
	t.Run("data", kind.testData)
	t.Run("order", kind.testOrder)
	t.Run("both ways at once", kind.testConcurrent)
	t.Run("unknown source", kind.testUnknownSource)
	t.Run("close", kind.testClose)
	t.Run("wrong use", kind.testMisuse)
	t.Run("port taken", kind.testPortTaken)
	t.Run("wrong address", kind.testWrongAddress)
}

func (k Kind) newMap(t testing.TB, n int) *rankmap.Map {
	t.Helper()
	if k.Map != nil {
		return k.Map(t, n)
	}
	return Map(t, n)
}

// Pair returns the connected ends of ranks 0 and 1 of a new map.
func (k Kind) Pair(t *testing.T) (a, b *End) {
	t.Helper()
	m := k.newMap(t, 2)
	ends := [2]*End{}
	for rank := range ends {
		tr, err := k.Listen(m, rank)
		if err != nil {
			t.Fatal(err)
		}
		if tr.LocalAddr() != m.Addr(rank) {
			t.Errorf("rank %d is bound to %v instead of %v", rank, tr.LocalAddr(), m.Addr(rank))
		}
		ends[rank] = Start(t, tr)
	}
	ends[0].WaitConnected(t, 1)
	ends[1].WaitConnected(t, 0)
	return ends[0], ends[1]
}

// numberedHeader returns a header that contains number.
func numberedHeader(src, dst int, number uint32) []byte {
	return protocol.CloudFPGA.Append(nil, protocol.Header{
		Src: uint32(src), Dst: uint32(dst), Size: number, Type: protocol.SendRequest})
}

// checkHeader checks that the next packet to arrive is the given header, from the given peer.
func (e *End) checkHeader(t *testing.T, peer int, header []byte) {
	t.Helper()
	packet := e.Next(t)
	kind := mpe.RxDatagram
	if e.Reliable() {
		kind = mpe.RxHeader
	}
	if packet.Kind != kind || packet.Peer != peer || !bytes.Equal(packet.Bytes, header) {
		t.Fatalf("got %d from %d: %x, want %d from %d: %x", packet.Kind, packet.Peer, packet.Bytes, kind, peer, header)
	}
}

func (k Kind) testHeaders(t *testing.T) {
	a, b := k.Pair(t)
	for i := range uint32(20) {
		there, back := numberedHeader(0, 1, i), numberedHeader(1, 0, i)
		if err := a.SendHeader(1, there); err != nil {
			t.Fatal(err)
		}
		b.checkHeader(t, 0, there)
		if err := b.SendHeader(0, back); err != nil {
			t.Fatal(err)
		}
		a.checkHeader(t, 1, back)
	}
}

func (k Kind) testData(t *testing.T) {
	a, b := k.Pair(t)
	for name, shape := range map[string]protocol.Shape{
		"cpu": protocol.CPUShape(), "fpga": protocol.FPGAShape(true), "split": protocol.FPGAShape(false),
	} {
		for _, words := range []uint32{0, 1, 2, 3, 345, 346, 347, 348, 700, 1000, 1056, 65537, 262160} {
			t.Run(fmt.Sprintf("%s %d", name, words), func(t *testing.T) {
				header := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Size: words, Type: protocol.Data})
				payload := make([]byte, words*protocol.WordLen)
				for i := range payload {
					payload[i] = byte(i*7 + i>>8 + 1)
				}
				// Datagrams may be lost, although only on a heavily loaded machine.
				for try := 1; ; try++ {
					if err := a.SendData(1, header, payload, shape); err != nil {
						t.Fatal(err)
					}
					err := b.checkMessage(header, payload, shape)
					if err == nil {
						return
					}
					if b.Reliable() || try == 3 {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// checkMessage receives one message from rank 0 and compares it.
func (e *End) checkMessage(header, payload []byte, shape protocol.Shape) error {
	want := bytes.Clone(append(bytes.Clone(header), payload...))
	words := uint32(len(payload) / protocol.WordLen)
	var lengths []int64
	if !e.Reliable() {
		total := shape.PayloadBytes(words)
		want = append(want, make([]byte, total-int64(len(payload)))...)
		for off := int64(0); off < total || len(lengths) == 0; {
			n := shape.PayloadAt(off, total)
			off += n
			if len(lengths) == 0 {
				n += protocol.HeaderLen
			}
			lengths = append(lengths, n)
		}
	}
	var got []byte
	for len(got) < len(want) {
		packet, ok := e.nextWithin(Timeout / 5)
		if !ok {
			return fmt.Errorf("%d of %d bytes arrived", len(got), len(want))
		}
		if err := checkPiece(packet, e.Reliable(), len(got), lengths); err != nil {
			return err
		}
		if !e.Reliable() {
			lengths = lengths[1:]
		}
		got = append(got, packet.Bytes...)
	}
	if !bytes.Equal(got, want) {
		return errors.New("the bytes changed on the way")
	}
	return nil
}

// checkPiece checks one packet of a message. The parameter there is the number of bytes of the message that have
// already been received.
func checkPiece(packet mpe.RxPacket, stream bool, there int, lengths []int64) error {
	kind := mpe.RxDatagram
	switch {
	case stream && there == 0:
		kind = mpe.RxHeader
	case stream:
		kind = mpe.RxPayload
	case len(lengths) == 0 || int64(len(packet.Bytes)) != lengths[0]:
		return fmt.Errorf("a datagram of %d bytes after %d, want %v", len(packet.Bytes), there, lengths)
	}
	if packet.Kind != kind || packet.Peer != 0 {
		return fmt.Errorf("got %d from %d after %d bytes, want %d from 0", packet.Kind, packet.Peer, there, kind)
	}
	return nil
}

func (k Kind) testOrder(t *testing.T) {
	a, b := k.Pair(t)
	payload := make([]byte, 1000*protocol.WordLen)
	data := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Size: 1000, Type: protocol.Data})
	for i := range uint32(10) {
		err := errors.Join(
			a.SendHeader(1, numberedHeader(0, 1, 2*i)),
			a.SendData(1, data, payload, protocol.CPUShape()),
			a.SendHeader(1, numberedHeader(0, 1, 2*i+1)))
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(10) {
		b.checkHeader(t, 0, numberedHeader(0, 1, 2*i))
		if err := b.checkMessage(data, payload, protocol.CPUShape()); err != nil {
			t.Fatal(err)
		}
		b.checkHeader(t, 0, numberedHeader(0, 1, 2*i+1))
	}
}

func (k Kind) testConcurrent(t *testing.T) {
	a, b := k.Pair(t)
	const rounds = 40
	sent := make(chan error, 2)
	send := func(from *End, rank, peer int) {
		payload := make([]byte, 346*protocol.WordLen)
		data := protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: uint32(rank), Dst: uint32(peer), Size: 346, Type: protocol.Data})
		for i := range uint32(rounds) {
			if err := errors.Join(from.SendHeader(peer, numberedHeader(rank, peer, i)),
				from.SendData(peer, data, payload, protocol.CPUShape())); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}
	go send(a, 0, 1)
	go send(b, 1, 0)
	for range 2 {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []*End{a, b} {
		want := rounds * (2*protocol.HeaderLen + 346*protocol.WordLen)
		for got := 0; got < want; {
			got += len(e.Next(t).Bytes)
		}
	}
}
