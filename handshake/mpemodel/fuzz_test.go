package mpemodel

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// FuzzModel drives a model with bounded FIFOs by arbitrary calls, datagrams and waits: it must not panic, hang or grow.
func FuzzModel(f *testing.F) {
	send := func(t protocol.Type, size uint32) []byte {
		return append([]byte{2, 0, protocol.HeaderLen, 0}, modeltest.Header(t, 0, 1, size)...)
	}
	f.Add([]byte{0, 0, 3, 0, 2, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(append([]byte{1, 0, 4, 0}, append(send(protocol.SendRequest, 0), send(protocol.Data, 1<<32-1)...)...))
	f.Add(append([]byte{0, 0, 4, 0}, append(send(protocol.ClearToSend, 0), send(protocol.Ack, 0)...)...))
	f.Add([]byte{1, 0, 4, 0, 3, 0, 255, 255, 3, 0, 255, 255, 4, 0, 3, 5, 4, 0, 2, 9})
	f.Fuzz(func(t *testing.T, in []byte) {
		m := New(Config{Rank: 1, Peers: []int{0, 2}, FIFOBytes: 2048})
		var now time.Duration
		called := false
		for len(in) >= 4 {
			op, peer, n := in[0], int(in[1]%4)-1, int(binary.LittleEndian.Uint16(in[2:]))
			in = in[4:]
			switch op % 5 {
			case 0:
				err := m.Send(now, peer, make([]uint32, n%2000), protocol.Datatype(op>>7))
				called = called || err == nil
			case 1:
				err := m.Recv(now, peer, uint32(n%2000), protocol.Datatype(op>>7))
				called = called || err == nil
			case 2:
				n = min(n, len(in))
				m.Datagram(now, peer, in[:n])
				in = in[n:]
			case 3:
				now += time.Duration(n) * ms
				m.Tick(now)
			case 4:
				// A control packet or a long DATA, which mutations rarely produce.
				b := modeltest.Header(protocol.Type(n%6), max(peer, 0), 1, uint32(n>>4))
				if protocol.Type(n%6) == protocol.Data {
					b = append(b, make([]byte, n%1500)...)
				}
				m.Datagram(now, peer, b)
			}
			checkInvariants(t, m, now)
			if _, _, done := m.Result(); called && done == m.Busy() {
				t.Fatalf("done and busy are both %v", done)
			}
		}
	})
}

func checkInvariants(t *testing.T, m *Model, now time.Duration) {
	t.Helper()
	for _, p := range m.TakePackets() {
		if p.To != 0 && p.To != 2 || len(p.Bytes) > protocol.MaxDatagram+lineLen || p.At > now {
			t.Fatalf("sent %d bytes to %d at %v, now %v", len(p.Bytes), p.To, p.At, now)
		}
	}
	if len(m.in.words) > 128 || len(m.in.sources) > maxSources || len(m.in.heldWords) > 65536/wordLen ||
		len(m.dequeuer.fifo) > dataFIFOWords || m.dequeuer.pendingDone > maxPendingDone ||
		len(m.dequeuer.lengths) > maxRetransmissions+1 || len(m.wrapper.feedback) > maxRetransmissions+1 {
		t.Fatalf("grown: %+v", m)
	}
	if at, ok := m.NextEvent(); ok && at <= now {
		t.Fatalf("a timeout at %v did not fire, now %v", at, now)
	}
	why, wedged := m.Wedged()
	if wedged != (why != "") || wedged && !m.Busy() {
		t.Fatalf("wedged %v: %q", wedged, why)
	}
}
