package tcp

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// dataPacket returns the DATA packet for a part of a message.
func dataPacket(message uint32, all []byte, offset, length int) string {
	h := protocol.ExtHeader{
		Dst: 1, Type: protocol.Data, Session: 7, PeerSession: 9, Number: uint32(offset), Message: message,
		Length: uint32(len(all)), Offset: uint32(offset),
	}
	payload := all[offset : offset+length]
	var header [protocol.ExtHeaderLen]byte
	protocol.PutExtended(header[:], &h, payload)
	return string(header[:]) + string(payload)
}

// dataPackets returns all packets of a message, each of maximum length.
func dataPackets(message uint32, all []byte) (packets []string) {
	for offset := 0; offset < len(all); offset += protocol.MaxStreamPayload {
		packets = append(packets, dataPacket(message, all, offset, min(len(all)-offset, protocol.MaxStreamPayload)))
	}
	return packets
}

// placing polls in the same way as an engine, and assembles message 5.
type placing struct {
	polled
	buf    []byte
	stored int
	// placed counts packets whose payload was placed directly.
	placed int
	got    []string
}

// places returns the placement for message 5 of rank 0, if the first stored bytes have already arrived.
func places(stored int, buf []byte) *mpe.Placements {
	var at mpe.Placements
	at.Set(mpe.Placement{HeaderLen: protocol.ExtHeaderLen, Message: 5, Offset: uint32(stored), Buf: buf[stored:]})
	return &at
}

// poll polls once, and returns the kinds of the packets.
func (p *placing) poll(most int) (kinds []mpe.RxKind) {
	p.t.Helper()
	batch := make([]mpe.RxPacket, most)
	n, err := p.Poll(batch, places(p.stored, p.buf))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range batch[:withoutGone(batch[:n])] {
		kinds = append(kinds, a.Kind)
		if a.Kind != mpe.RxDatagram {
			continue
		}
		if a.Peer != 0 || !a.Verified {
			p.t.Fatalf("%+v", a)
		}
		packet := slices.Concat(a.Bytes, a.Tail)
		p.got = append(p.got, string(packet))
		h, payload, defect := protocol.ParseExtended(packet)
		if !defect.OK() {
			p.t.Fatal(defect)
		}
		if h.Type != protocol.Data || h.Message != 5 {
			continue
		}
		if to := p.buf[h.Offset:]; len(a.Tail) > 0 && &to[0] == &a.Tail[0] {
			p.placed++
		} else {
			copy(to, payload)
		}
		p.stored = max(p.stored, int(h.Offset)+len(payload))
	}
	return kinds
}

// TestPollPlaces checks that a stream arrives as it was sent, whatever it contains and wherever it is cut, and
// that expected payload is placed directly.
func TestPollPlaces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	message, other := make([]byte, 12*protocol.MaxStreamPayload+500), make([]byte, 2*protocol.MaxStreamPayload)
	for i := range message {
		message[i] = byte(random.Uint32())
	}
	_, short := packetStream(0, 12)
	whole := dataPackets(5, message)
	mixed := slices.Concat(short, whole[:3], dataPackets(6, other), whole[3:4], short, whole[4:])
	tail := slices.Clone(whole)
	tail[11], tail[12] = tail[12], tail[11]
	for name, tt := range map[string]struct {
		packets []string
		placed  int
	}{
		"one message":    {whole, 13},
		"others between": {mixed, 1},
		"order":          {tail, 11},
	} {
		for _, cut := range []int{0, 1, 79, 80, 81, 5000, protocol.MaxStreamPayload,
			protocol.ExtHeaderLen + protocol.MaxStreamPayload, 65483} {
			for _, most := range []int{1, 3, 64} {
				c := newPolled(t, 2, nil)
				p := placing{polled: c, buf: make([]byte, len(message))}
				conn := c.dialed(0)
				stream := []byte(concat(tt.packets))
				for first := cut; len(stream) > 0; first = 0 {
					n := min(cmp.Or(first, 65483), len(stream))
					write(t, conn, stream[:n])
					stream = stream[n:]
					c.wake()
					p.poll(most)
				}
				for len(p.got) < len(tt.packets) {
					c.wake()
					p.poll(most)
				}
				if !slices.Equal(p.got, tt.packets) || !bytes.Equal(p.buf, message) {
					t.Fatalf("%s, cut at %d, %d at a time: another stream arrived", name, cut, most)
				}
				want := tt.placed
				if cut > 0 && name == "one message" {
					want-- // the cut packet, if it is cut in its header
				}
				if (cut == 0 || name == "one message") && p.placed < want {
					t.Errorf("%s, cut at %d, %d at a time: %d packets were placed, want %d", name, cut, most, p.placed,
						want)
				}
				conn.Close() // c waits for that
				c.Close()
			}
		}
	}
}

func concat(packets []string) (all string) {
	for _, p := range packets {
		all += p
	}
	return all
}

// TestPollPlacesLeavesOut checks a packet of which only a part has been placed. If its placement no longer
// exists, the rest is skipped, wherever it was cut and in whatever pieces it arrives, and the packets after it
// still arrive.
func TestPollPlacesLeavesOut(t *testing.T) {
	message := make([]byte, 3*protocol.MaxStreamPayload)
	rand.NewChaCha8([32]byte{}).Read(message)
	// The skipped payload contains data that looks like the header of the next packet. It is at the start of
	// pieces, and has no checksum of the payload.
	h := protocol.ExtHeader{
		Dst: 1, Type: protocol.Data, Flags: protocol.FlagPlain, Session: 7, PeerSession: 9, Message: 5,
		Length: uint32(len(message)), Offset: 2 * protocol.MaxStreamPayload,
	}
	var header [protocol.ExtHeaderLen]byte
	protocol.PutExtended(header[:], &h, message[h.Offset:])
	for at := protocol.MaxStreamPayload +
		5000 - protocol.ExtHeaderLen; at < 2*protocol.MaxStreamPayload-protocol.ExtHeaderLen; at += 1000 {
		copy(message[at:], header[:])
	}
	packets := dataPackets(5, message)
	_, behind := packetStream(0, 3)
	for name, next := range map[string]func(buf []byte) *mpe.Placements{
		"none":         func([]byte) *mpe.Placements { return nil },
		"other memory": func(buf []byte) *mpe.Placements { return places(protocol.MaxStreamPayload, bytes.Clone(buf)) },
		"other offset": func(buf []byte) *mpe.Placements { return places(2*protocol.MaxStreamPayload, buf) },
		"shorter": func(buf []byte) *mpe.Placements {
			return places(protocol.MaxStreamPayload, buf[:protocol.MaxStreamPayload+100])
		},
		"of other peer": func(buf []byte) *mpe.Placements {
			var at mpe.Placements
			at.Set(mpe.Placement{Peer: 1, HeaderLen: protocol.ExtHeaderLen, Message: 5, Offset: protocol.MaxStreamPayload,
				Buf: buf[protocol.MaxStreamPayload:]})
			return &at
		},
	} {
		for _, part := range []int{protocol.ExtHeaderLen + 1, 5000,
			protocol.ExtHeaderLen + protocol.MaxStreamPayload - 1} {
			for _, piece := range []int{1000, 1 << 20} {
				c := newPolled(t, 2, nil)
				conn := c.dialed(0)
				p := placing{polled: c, buf: make([]byte, len(message))}
				write(t, conn, []byte(packets[0]+packets[1][:part]))
				for len(p.got) < 1 || c.Conn.inbox.byRank[0].wire.direct.partialBytes < part {
					c.wake()
					p.poll(8)
				}
				if n := part - protocol.ExtHeaderLen; !bytes.Equal(p.buf[protocol.MaxStreamPayload:][:n],
					message[protocol.MaxStreamPayload:][:n]) {
					t.Fatalf("%s, cut at %d: the part is not in its place", name, part)
				}
				was := bytes.Clone(p.buf)
				var got []string
				for rest := []byte(packets[1][part:] + packets[2] + concat(behind)); len(got) < 1+len(behind); {
					n := min(piece, len(rest))
					write(t, conn, rest[:n])
					rest = rest[n:]
					c.wake()
					batch := make([]mpe.RxPacket, 8)
					n, err := c.Poll(batch, next(p.buf))
					if err != nil {
						t.Fatal(err)
					}
					for _, a := range batch[:withoutGone(batch[:n])] {
						if a.Kind != mpe.RxDatagram {
							t.Fatalf("%s, cut at %d: %+v", name, part, a)
						}
						got = append(got, string(slices.Concat(a.Bytes, a.Tail)))
					}
				}
				if want := append([]string{packets[2]}, behind...); !slices.Equal(got, want) {
					t.Errorf("%s, cut at %d, pieces of %d: the packets received after the partial one are wrong", name, part, piece)
				}
				if name != "other offset" && name != "shorter" && !bytes.Equal(p.buf, was) {
					t.Errorf("%s, cut at %d: its memory was written to", name, part)
				}
				conn.Close()
				c.Close()
			}
		}
	}
}

// TestPollPlacesBroken checks that an invalid stream is closed, and that a stream that ends is closed too.
func TestPollPlacesBroken(t *testing.T) {
	message := make([]byte, 3*protocol.MaxStreamPayload)
	stream := []byte(concat(dataPackets(5, message)))
	flip := func(at int) []byte {
		bad := bytes.Clone(stream)
		bad[at] ^= 1
		return bad
	}
	const second = protocol.ExtHeaderLen + protocol.MaxStreamPayload
	for name, tt := range map[string]struct {
		bytes []byte
		whole int
	}{
		"payload": {flip(second + protocol.ExtHeaderLen + 5), 1},
		"header":  {flip(second), 1},
		"end":     {stream[:2*second+100], 2},
	} {
		c := newPolled(t, 2, nil)
		p := placing{polled: c, buf: make([]byte, len(message))}
		conn := c.dialed(0)
		write(t, conn, tt.bytes)
		conn.CloseWrite()
		var kinds []mpe.RxKind
		for connected := true; connected; connected, _ = c.Connection(0) {
			c.wake()
			kinds = append(kinds, p.poll(8)...)
		}
		if broken := slices.Contains(kinds, mpe.RxBroken); broken != (name != "end") || len(p.got) != tt.whole {
			t.Errorf("%s: %d packets, and %v", name, len(p.got), kinds)
		}
	}
}

// TestPollPlacesOfSeveralPeers checks that payload from several peers is placed in one poll, and that
// unexpected payload from one peer is not placed where payload from another is expected.
func TestPollPlacesOfSeveralPeers(t *testing.T) {
	for _, expected := range []int{1, 2} {
		c := newPolled(t, 3, nil)
		var messages [2][]byte
		var packets [2][]string
		var conns [2]*net.TCPConn
		var at mpe.Placements
		for peer := range conns {
			conns[peer] = c.dialed(peer)
			messages[peer] = bytes.Repeat([]byte{byte(peer + 1)}, 2*protocol.MaxStreamPayload)
			packets[peer] = dataPackets(5, messages[peer])
			if peer < expected {
				at.Set(mpe.Placement{Peer: peer, HeaderLen: protocol.ExtHeaderLen, Message: 5,
					Buf: make([]byte, len(messages[peer]))})
			}
		}
		for peer, conn := range conns {
			write(t, conn, []byte(packets[peer][0]))
		}
		batch := make([]mpe.RxPacket, 4)
		var got [2]int
		for got[0]+got[1] < 2 {
			c.wake()
			n, err := c.Poll(batch, &at)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range batch[:withoutGone(batch[:n])] {
				if string(slices.Concat(a.Bytes, a.Tail)) != packets[a.Peer][0] {
					t.Fatalf("%d expected: another packet than that of peer %d", expected, a.Peer)
				}
				if place := at.ForPeer(a.Peer); place != nil && len(a.Tail) > 0 && &a.Tail[0] != &place.Buf[0] ||
					place == nil && len(a.Tail) > 0 {
					t.Errorf("%d expected: the packet of peer %d is elsewhere", expected, a.Peer)
				}
				got[a.Peer]++
			}
		}
	}
}

func TestPollPlacesAllocatesNothing(t *testing.T) {
	c := newPolled(t, 2, nil)
	conn := c.dialed(0)
	message := make([]byte, 3*protocol.MaxStreamPayload)
	stream := []byte(concat(append(dataPackets(5, message), dataPackets(6, message)...)))
	batch := make([]mpe.RxPacket, 64)
	var at mpe.Placements
	once := func() {
		write(t, conn, stream)
		for offset, got := 0, 0; got < 6; {
			at.Set(mpe.Placement{HeaderLen: protocol.ExtHeaderLen, Message: 5, Offset: uint32(offset),
				Buf: message[offset:]})
			n, _ := c.Poll(batch, &at)
			for i := range batch[:n] {
				if batch[i].Kind == mpe.RxDatagram {
					got++
					offset = min(got, 3) * protocol.MaxStreamPayload
				}
			}
		}
	}
	for range 20 {
		once()
	}
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPollPlaces(b *testing.B) {
	for name, head := range map[string]int{"placed": protocol.ExtHeaderLen, "copied": 0} {
		b.Run(name, func(b *testing.B) {
			conns := pair(b, protocol.Extended, Listen)
			message := make([]byte, 1<<20)
			packets := make([]mpe.Packet, 32)
			for i, text := range dataPackets(5, message) {
				copy(packets[i].Header[:], text)
				packets[i].Payload = []byte(text[protocol.ExtHeaderLen:])
			}
			batch := make([]mpe.RxPacket, 64)
			var at mpe.Placements
			b.SetBytes(int64(len(message)))
			b.ReportAllocs()
			for b.Loop() {
				if n, err := conns[0].SendPackets(1, packets); n != len(packets) || err != nil {
					b.Fatal(n, err)
				}
				for offset := 0; offset < len(message); {
					at.Set(mpe.Placement{HeaderLen: head, Message: 5, Offset: uint32(offset), Buf: message[offset:]})
					n, err := conns[1].Poll(batch, &at)
					if err != nil {
						b.Fatal(err)
					}
					for i := range batch[:n] {
						a := &batch[i]
						if len(a.Tail) == 0 {
							a.Tail = a.Bytes[protocol.ExtHeaderLen:]
							copy(message[offset:], a.Tail)
						}
						offset += len(a.Tail)
					}
					if n == 0 {
						_, _ = conns[0].Poll(batch[:1], nil) // writes pending data
					}
				}
			}
		})
	}
}
