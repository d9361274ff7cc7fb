package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// PacketKind describes a kind of transport that can carry packets of the extended profile.
type PacketKind struct {
	// Pair returns the connected ends of ranks 0 and 1.
	Pair func(t *testing.T) (a, b *End)
	// MaxPayload is the longest payload of a packet, in bytes.
	MaxPayload int
}

// RunPackets tests that the transports of a kind implement SendPackets correctly.
func RunPackets(t *testing.T, k PacketKind) {
	t.Run("whole and in order", k.testLengths)
	t.Run("the caller's bytes", k.testBufferReuse)
	t.Run("both ways at once", k.testConcurrent)
	t.Run("wrong use", k.testMisuse)
	t.Run("after close", k.testAfterClose)
}

// Packet returns a valid DATA packet with the given number and payload length. The payload differs from packet
// to packet.
func Packet(src, dst int, number uint32, payload int) mpe.Packet {
	p := mpe.Packet{Payload: make([]byte, payload)}
	for i := range p.Payload {
		p.Payload[i] = byte(uint32(i)*7 + number)
	}
	protocol.PutExtended(p.Header[:], &protocol.ExtHeader{
		Src: uint32(src), Dst: uint32(dst), Type: protocol.Data, Flags: protocol.FlagEager, Session: 1, PeerSession: 2,
		Number: number, Message: number, Length: uint32(payload)}, p.Payload)
	return p
}

// SendHeader sends a header over the End's transport.
func (e *End) SendHeader(peer int, header []byte) error {
	return e.Transport.(mpe.HandshakeTransport).SendHeader(peer, header)
}

// SendData sends a DATA message.
func (e *End) SendData(peer int, header, payload []byte, shape protocol.Shape) error {
	return e.Transport.(mpe.HandshakeTransport).SendData(peer, header, payload, shape)
}

// SendPackets sends packets of the extended profile.
func (e *End) SendPackets(peer int, packets []mpe.Packet) (int, error) {
	return e.Transport.SendPackets(peer, packets)
}

// SendAllPackets sends packets, and fails the test unless the transport accepts all of them.
func (e *End) SendAllPackets(t testing.TB, peer int, packets []mpe.Packet) {
	t.Helper()
	if n, err := e.SendPackets(peer, packets); n != len(packets) || err != nil {
		t.Fatalf("%d of %d packets went, %v", n, len(packets), err)
	}
}

// CheckPacket checks that the next packet to arrive is want, from the given peer.
func (e *End) CheckPacket(t testing.TB, peer int, want mpe.Packet) {
	t.Helper()
	if err := comparePacket(e.Next(t), peer, want); err != nil {
		t.Fatal(err)
	}
}

func comparePacket(packet mpe.RxPacket, peer int, want mpe.Packet) error {
	if packet.Kind != mpe.RxDatagram || packet.Peer != peer {
		return fmt.Errorf("got %d from %d, want %d from %d", packet.Kind, packet.Peer, mpe.RxDatagram, peer)
	}
	if !bytes.Equal(packet.Bytes, slices.Concat(want.Header[:], want.Payload)) {
		got, _, defect := protocol.ParseExtended(packet.Bytes)
		return fmt.Errorf("got %d bytes, %v, %v; want %d bytes", len(packet.Bytes), &got, defect,
			len(want.Header)+len(want.Payload))
	}
	return nil
}

// testLengths tests that packets of all lengths arrive complete, in batches.
func (k PacketKind) testLengths(t *testing.T) {
	a, b := k.Pair(t)
	lengths := []int{0, 1, 7, 8, 1000, k.MaxPayload - 1, k.MaxPayload}
	number := uint32(0)
	for _, n := range []int{0, 1, 2, 63, 64, 65, 150} {
		packets := make([]mpe.Packet, n)
		for i := range packets {
			number++
			packets[i] = Packet(0, 1, number, lengths[i%len(lengths)])
		}
		// Datagrams may be lost, although only on a heavily loaded machine.
		for try := 1; ; try++ {
			a.SendAllPackets(t, 1, packets)
			err := b.checkPackets(0, packets)
			if err == nil {
				break
			}
			if b.Reliable() || try == 3 {
				t.Fatalf("%d packets: %v", n, err)
			}
		}
	}
}

func (e *End) checkPackets(peer int, packets []mpe.Packet) error {
	for i, want := range packets {
		a, ok := e.nextWithin(Timeout / 5)
		if !ok {
			return fmt.Errorf("%d of %d packets arrived", i, len(packets))
		}
		if err := comparePacket(a, peer, want); err != nil {
			return fmt.Errorf("packet %d: %w", i, err)
		}
	}
	return nil
}

// testBufferReuse tests that the caller may overwrite packets once they have been sent.
func (k PacketKind) testBufferReuse(t *testing.T) {
	a, b := k.Pair(t)
	packets := []mpe.Packet{Packet(0, 1, 1, 100), Packet(0, 1, 2, k.MaxPayload)}
	want := slices.Clone(packets)
	for i := range want {
		want[i].Payload = slices.Clone(packets[i].Payload)
	}
	a.SendAllPackets(t, 1, packets)
	for i := range packets {
		clear(packets[i].Header[:])
		clear(packets[i].Payload)
	}
	for _, p := range want {
		b.CheckPacket(t, 0, p)
	}
}

func (k PacketKind) testConcurrent(t *testing.T) {
	a, b := k.Pair(t)
	const rounds, each = 20, 5
	sent := make(chan error, 2)
	send := func(from *End, rank, peer int) {
		for i := range uint32(rounds) {
			packets := make([]mpe.Packet, each)
			for j := range packets {
				packets[j] = Packet(rank, peer, each*i+uint32(j), 200)
			}
			if n, err := from.SendPackets(peer, packets); n != each || err != nil {
				sent <- fmt.Errorf("%d packets went, %w", n, err)
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
	for i := range uint32(rounds * each) {
		b.CheckPacket(t, 0, Packet(0, 1, i, 200))
		a.CheckPacket(t, 1, Packet(1, 0, i, 200))
	}
}

func (k PacketKind) testMisuse(t *testing.T) {
	a, b := k.Pair(t)
	good := Packet(0, 1, 1, 8)
	for name, tt := range map[string]struct {
		peer    int
		packets []mpe.Packet
	}{
		"no such peer":  {2, []mpe.Packet{good}},
		"negative peer": {-1, []mpe.Packet{good}},
		"too long":      {1, []mpe.Packet{good, Packet(0, 1, 2, k.MaxPayload+1)}},
	} {
		if n, err := a.SendPackets(tt.peer, tt.packets); n != 0 || err == nil {
			t.Errorf("%s: %d packets went, %v", name, n, err)
		}
	}
	// None of the previous calls has sent anything.
	last := Packet(0, 1, 3, 8)
	a.SendAllPackets(t, 1, []mpe.Packet{last})
	b.CheckPacket(t, 0, last)
}

func (k PacketKind) testAfterClose(t *testing.T) {
	a, b := k.Pair(t)
	b.Close()
	if n, err := b.SendPackets(0, []mpe.Packet{Packet(1, 0, 1, 8)}); n != 0 || !errors.Is(err, mpe.ErrTransportClosed) {
		t.Errorf("%d packets went, %v", n, err)
	}
	// A missing peer is not an error, because it may return.
	for i := range uint32(50) {
		if _, err := a.SendPackets(1, []mpe.Packet{Packet(0, 1, i, k.MaxPayload)}); err != nil {
			t.Fatal(err)
		}
	}
}
