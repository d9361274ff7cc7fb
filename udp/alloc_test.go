package udp

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestNoAllocations makes the rank send to itself, so that there always is a datagram to receive.
func TestNoAllocations(t *testing.T) {
	m := transporttest.Map(t, 1)
	c, err := Listen(Config{Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	header, payload := dataPacket(1000)
	request := protocol.CloudFPGA.Append(nil, protocol.Header{Type: protocol.SendRequest})
	packets, _ := numbered(8)
	packetBytes := 0
	for i := range packets {
		packetBytes += len(packets[i].Header) + len(packets[i].Payload)
	}
	batch := make([]mpe.RxPacket, 8)
	recv := func(want int) {
		for got := 0; got < want; {
			n, err := c.Recv(batch)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range batch[:n] {
				got += len(a.Bytes)
			}
		}
	}
	for name, run := range map[string]func(){
		"header": func() {
			if err := c.SendHeader(0, request); err != nil {
				t.Fatal(err)
			}
			recv(protocol.HeaderLen)
		},
		"1000 words": func() {
			if err := c.SendData(0, header, payload, protocol.FPGAShape(true)); err != nil {
				t.Fatal(err)
			}
			recv(protocol.HeaderLen + len(payload))
		},
		"8 packets": func() {
			if n, err := c.SendPackets(0, packets); n != len(packets) || err != nil {
				t.Fatal(n, err)
			}
			recv(packetBytes)
		},
	} {
		if n := testing.AllocsPerRun(200, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkSendRecvHeader(b *testing.B) { benchmark(b, 0) }
func BenchmarkSendRecv346(b *testing.B)    { benchmark(b, 346) }
func BenchmarkSendRecv20000(b *testing.B)  { benchmark(b, 20000) }

func benchmark(b *testing.B, words int) {
	m := transporttest.Map(b, 1)
	c, err := Listen(Config{Map: m})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	header, payload := dataPacket(words)
	batch := make([]mpe.RxPacket, ringLen)
	b.SetBytes(int64(len(header) + len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.SendData(0, header, payload, protocol.CPUShape()); err != nil {
			b.Fatal(err)
		}
		for got := 0; got < len(header)+len(payload); {
			n, err := c.Recv(batch)
			if err != nil {
				b.Fatal(err)
			}
			for _, a := range batch[:n] {
				got += len(a.Bytes)
			}
		}
	}
}
