package extended

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// couple is two Conns that are connected directly and reuse their buffers, so that the benchmarks exclude the cost of
// an engine.
type couple struct {
	conns [2]*Conn
	acts  [2][]Action
	wire  [2][]wirePacket // in transit to the other Conn
	spare []wirePacket
	now   Instant
	data  []byte
	// opened, arrived and done are counts of messages; packets is the number of packets sent, in both directions.
	opened, arrived, done, packets int
	accept                         bool // accept messages when they are opened
	kept                           []Message
}

type wirePacket struct{ b []byte }

func newCouple(cfg Config) *couple {
	cfg = sixteen(cfg)
	c := &couple{data: make([]byte, 1<<26), accept: true}
	for i := range c.conns {
		cfg.Local, cfg.Remote, cfg.Seed = uint32(i), uint32(1-i), uint64(i+1)
		c.conns[i] = New(cfg)
	}
	return c
}

// send posts a message of n bytes.
func (c *couple) send(from int, id ID, n int64, tag uint32) {
	c.acts[from] = c.conns[from].Send(c.now, SendOp{ID: id, Length: n, Tag: tag}, c.acts[from])
}

// deliverAll delivers packets in both directions until none is left.
func (c *couple) deliverAll() {
	for {
		for i := range c.conns {
			c.acts[i] = c.conns[i].Flush(c.now, c.acts[i])
			c.do(i)
		}
		if len(c.wire[0])+len(c.wire[1]) == 0 {
			return
		}
		c.now += 10 * time.Microsecond
		for i := range c.conns {
			packets := c.wire[i]
			c.wire[i] = nil
			for _, p := range packets {
				c.acts[1-i] = c.conns[1-i].Packet(c.now, p.b, c.acts[1-i])
				c.do(1 - i)
				c.spare = append(c.spare, p)
			}
			c.wire[i] = packets[:0]
			if i == 0 {
				c.acts[1] = c.conns[1].Flush(c.now, c.acts[1])
				c.do(1)
			}
		}
	}
}

func (c *couple) do(i int) {
	acts := c.acts[i]
	for k := 0; k < len(acts); k++ {
		switch a := &acts[k]; a.Kind {
		case Transmit, TransmitAck:
			payload := a.Payload
			if a.Length > 0 {
				payload = c.data[a.Offset : a.Offset+a.Length]
			}
			c.transmit(i, &a.Header, payload)
		case Open:
			c.opened++
			if c.accept {
				acts = c.conns[i].Accept(c.now, a.Message, a.Length, acts)
			} else {
				c.kept = append(c.kept, a.Message)
			}
		case Arrived:
			c.arrived++
		case SendDone:
			c.done++
		}
	}
	c.acts[i] = acts[:0]
}

func (c *couple) transmit(i int, h *protocol.ExtHeader, payload []byte) {
	var p wirePacket
	if n := len(c.spare); n > 0 {
		p, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		p.b = make([]byte, 0, protocol.MaxUDPDatagram)
	}
	p.b = append(p.b[:protocol.ExtHeaderLen], payload...)
	protocol.PutExtended(p.b, h, payload)
	c.wire[i] = append(c.wire[i], p)
	c.packets++
}

// These benchmarks measure the cost of a message or a packet for both sides together, including the codec. Use
// -cpuprofile to separate them.
func perPacket(b *testing.B, c *couple) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(c.packets), "ns/packet")
	b.ReportMetric(float64(c.packets)/float64(b.N), "packets/op")
}

func BenchmarkPingPong(b *testing.B) {
	c := newCouple(Config{})
	c.send(0, 1, 8, 0)
	c.deliverAll()
	c.packets = 0
	b.ReportAllocs()
	for b.Loop() {
		c.send(0, 1, 8, 0)
		c.deliverAll()
		c.send(1, 1, 8, 0)
		c.deliverAll()
	}
	perPacket(b, c)
}

func BenchmarkBulk(b *testing.B) {
	for name, cfg := range map[string]Config{
		"1344": {MaxPayload: 1344}, "32768": {MaxPayload: 32768}, "plain": {MaxPayload: 65435, HeaderChecksum: true},
	} {
		b.Run(name, func(b *testing.B) {
			const size = 1 << 24
			c := newCouple(cfg)
			c.send(0, 1, size, 0)
			c.deliverAll()
			c.packets = 0
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				c.send(0, 1, size, 0)
				c.deliverAll()
			}
			perPacket(b, c)
		})
	}
}

// 30,000 sends are posted at once: eager ones, and ones that are announced and cleared.
func BenchmarkOutstanding(b *testing.B) {
	for name, size := range map[string]int64{"eager": 8, "rendezvous": 20000} {
		b.Run(name, func(b *testing.B) {
			const outstanding = 30000
			c := newCouple(Config{})
			run := func() {
				for id := range ID(outstanding) {
					c.send(0, id, size, uint32(id))
				}
				c.deliverAll()
			}
			run()
			c.packets = 0
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
			perPacket(b, c)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/outstanding, "ns/message")
		})
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	c := newCouple(Config{})
	for name, run := range map[string]func(){
		"eager": func() {
			c.send(0, 1, 8, 0)
			c.deliverAll()
			c.send(1, 1, 8, 0)
			c.deliverAll()
		},
		"bulk": func() {
			c.send(0, 1, 1<<20, 0)
			c.deliverAll()
		},
		"large": func() {
			c.send(0, 1, 60000, 0)
			c.deliverAll()
			c.send(1, 1, 60000, 0)
			c.deliverAll()
		},
		"rendezvous": func() {
			c.acts[0] = c.conns[0].Send(c.now, SendOp{ID: 1, Length: 100, Sync: true}, c.acts[0])
			c.deliverAll()
		},
		"announced": func() {
			for id := range ID(300) {
				c.send(0, id, 20000, uint32(id))
			}
			c.deliverAll()
		},
		"many": func() {
			for id := range ID(1000) {
				c.send(0, id, 8, 0)
				c.send(1, id, 20000, 0)
			}
			c.deliverAll()
		},
	} {
		for range 20 {
			run()
		}
		c.done, c.arrived = 0, 0
		if n := testing.AllocsPerRun(50, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if c.done == 0 || c.arrived != c.done {
			t.Errorf("%s: %d sends are done, %d messages were received", name, c.done, c.arrived)
		}
	}
}
