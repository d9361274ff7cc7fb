package cpumodel

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// FuzzModel drives a model by arbitrary calls, datagrams, stalls and waits: it must not panic, hang or grow.
func FuzzModel(f *testing.F) {
	send := func(t protocol.Type, size uint32) []byte {
		return append([]byte{2, 1, protocol.HeaderLen, 0}, modeltest.Header(t, 0, 1, size)...)
	}
	f.Add([]byte{0, 1, 3, 0, 2, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(append([]byte{1, 1, 4, 0}, append(send(protocol.SendRequest, 0), send(protocol.Data, 1<<32-1)...)...))
	f.Add(append([]byte{0, 1, 4, 0}, append(send(protocol.ClearToSend, 0), send(protocol.Ack, 0)...)...))
	f.Add([]byte{1, 1, 200, 5, 4, 1, 1, 0, 4, 1, 3, 85, 5, 0, 200, 0, 2, 1, 0, 0, 3, 0, 255, 0, 4, 1, 3, 85, 6, 0, 9,
		0})
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 4096
		m := New(Config{Rank: 1, Peers: []int{0, 2}, SocketBytes: limit})
		var now time.Duration
		for len(in) >= 4 {
			op, peer, n := in[0], int(in[1]%4)-1, int(binary.LittleEndian.Uint16(in[2:]))
			in = in[4:]
			switch op % 7 {
			case 0:
				_ = m.Send(now, peer, make([]uint32, n%2000))
			case 1:
				_ = m.Recv(now, peer, n%2000)
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
			case 5:
				m.Stall(now, time.Duration(n)*ms)
			case 6:
				m.Stop(now, time.Duration(n)*ms)
			}
			checkInvariants(t, m, now)
		}
	})
}

func checkInvariants(t *testing.T, m *Model, now time.Duration) {
	t.Helper()
	for _, p := range m.TakePackets() {
		if p.To != 0 && p.To != 2 || len(p.Bytes) > maxDatagram || p.At > now {
			t.Fatalf("sent %d bytes to %d at %v, now %v", len(p.Bytes), p.To, p.At, now)
		}
	}
	if m.socket.bytes > m.cfg.SocketBytes || len(m.socket.queue) > m.cfg.SocketBytes+1 {
		t.Fatalf("%d datagrams of %d bytes are in the socket", len(m.socket.queue), m.socket.bytes)
	}
	if at, ok := m.NextEvent(); ok && at <= now {
		t.Fatalf("the event due at %v was not handled, now %v", at, now)
	}
	_, crashed := m.Crashed()
	if why, stuck := m.Stuck(); stuck != (why != "") || stuck && !m.Busy() || crashed && !stuck {
		t.Fatalf("stuck %v: %q, crashed %v", stuck, why, crashed)
	}
	if words, done := m.Result(); done && m.Busy() || words != nil && len(words) != m.count {
		t.Fatalf("done %v, busy %v, %d words of %d", done, m.Busy(), len(words), m.count)
	}
}
