package extended

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// lean is a rank in BenchmarkLean: a Conn with only as much of an engine as is needed to write a packet.
type lean struct {
	conn   *Conn
	acts   []Action
	packet []byte // the last packet sent
}

func (l *lean) do(now Instant, data []byte) {
	for k := 0; k < len(l.acts); k++ {
		switch a := &l.acts[k]; a.Kind {
		case Transmit, TransmitAck:
			payload := a.Payload
			if a.Kind == Transmit {
				payload = data[a.Offset : a.Offset+a.Length]
			}
			l.packet = append(l.packet[:protocol.ExtHeaderLen], payload...)
			protocol.PutExtended(l.packet, &a.Header, payload)
		case Open:
			l.acts = l.conn.Accept(now, a.Message, a.Length, l.acts)
		case Copy:
			copy(data[a.Offset:], a.Payload)
		}
	}
	l.acts = l.acts[:0]
}

// BenchmarkLean is a ping-pong of one packet each way, with only the calls that an engine makes for it.
func BenchmarkLean(b *testing.B) {
	c := newCouple(Config{})
	c.send(0, 1, 8, 0)
	c.deliverAll()
	c.send(1, 1, 8, 0)
	c.deliverAll()
	now := c.now
	data := make([]byte, 8)
	var ranks [2]lean
	for i := range ranks {
		ranks[i] = lean{conn: c.conns[i], packet: make([]byte, 0, 2048)}
	}
	sent := 0
	b.ReportAllocs()
	for b.Loop() {
		for from := range ranks {
			l, to := &ranks[from], &ranks[1-from]
			now += time.Microsecond
			l.acts = l.conn.Send(now, SendOp{ID: 1, Length: 8}, l.acts)
			l.acts = l.conn.Flush(now, l.acts)
			l.do(now, data)
			l.conn.Deadline()
			now += time.Microsecond
			to.acts = to.conn.Packet(now, l.packet, to.acts)
			to.do(now, data)
			to.acts = to.conn.Flush(now, to.acts)
			to.packet = to.packet[:0]
			to.do(now, data)
			if len(to.packet) > 0 { // new credit
				l.acts = l.conn.Packet(now, to.packet, l.acts)
				l.do(now, data)
			}
			to.conn.Deadline()
			sent++
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sent), "ns/message")
	if got := c.conns[1].Stats(); got.MessagesArrived != uint64(sent)/2+1 {
		b.Fatalf("%d of %d messages were received", got.MessagesArrived, sent/2+1)
	}
}
