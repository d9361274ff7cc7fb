package tcp

import (
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// pair returns the connected Conns of ranks 0 and 1.
func pair(t testing.TB, profile protocol.Profile, listen listener) (conns [2]*Conn) {
	m := transporttest.Map(t, 2)
	batch := make([]mpe.RxPacket, 1)
	for rank := range conns {
		c, err := listen(Config{Rank: rank, Map: m, Backoff: soon,
			Profile: func(int) protocol.Profile { return profile }})
		if err != nil {
			t.Fatal(err)
		}
		conns[rank] = c
	}
	for _, c := range conns {
		if _, err := c.Recv(batch); err != nil || batch[0].Kind != mpe.RxConnected {
			t.Fatalf("%+v, %v", batch[0], err)
		}
	}
	t.Cleanup(func() { // in parallel, because each waits for the other to close the connection
		var both sync.WaitGroup
		for _, c := range conns {
			both.Go(func() { c.Close() })
		}
		both.Wait()
	})
	return conns
}

func TestNoAllocationsOfPackets(t *testing.T) { bothWays(t, noAllocationsOfPackets) }

func noAllocationsOfPackets(t *testing.T, listen listener) {
	conns := pair(t, protocol.Extended, listen)
	batch := make([]mpe.RxPacket, 4)
	packets := []mpe.Packet{transporttest.Packet(0, 1, 1, 0), transporttest.Packet(0, 1, 2, 4000)}
	message := func() {
		if n, err := conns[0].SendPackets(1, packets); n != len(packets) || err != nil {
			t.Fatal(n, err)
		}
		for got := 0; got < len(packets); {
			n, err := conns[1].Recv(batch)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
	}
	for range 200 { // until all buffers exist
		message()
	}
	// The count includes the goroutines of both sides, which may allocate another buffer.
	if n := testing.AllocsPerRun(500, message); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNoAllocations(t *testing.T) {
	conns := pair(t, protocol.CloudFPGA, Listen)
	batch := make([]mpe.RxPacket, 4)
	header := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Size: 1000, Type: protocol.Data})
	payload := make([]byte, 1000*protocol.WordLen)
	plain := request(0, 1)
	message := func() {
		if err := conns[0].SendHeader(1, plain); err != nil {
			t.Fatal(err)
		}
		if err := conns[0].SendData(1, header, payload, protocol.CPUShape()); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < 2*protocol.HeaderLen+len(payload); {
			n, err := conns[1].Recv(batch)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range batch[:n] {
				got += len(a.Bytes)
			}
		}
	}
	for range 100 { // until all buffers exist
		message()
	}
	// The count includes the reader's goroutine, which may allocate another buffer.
	if n := testing.AllocsPerRun(500, message); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPackets72(b *testing.B)    { benchmarkPackets(b, 64, 0) }
func BenchmarkPackets32840(b *testing.B) { benchmarkPackets(b, 8, protocol.MaxStreamPayload) }

// benchmarkPackets sends lists of packets in one direction. Each list is sent after the previous one was received.
func benchmarkPackets(b *testing.B, n, payload int) {
	conns := pair(b, protocol.Extended, Listen)
	packets := make([]mpe.Packet, n)
	for i := range packets {
		packets[i] = transporttest.Packet(0, 1, uint32(i), payload)
	}
	batch := make([]mpe.RxPacket, recvBatch)
	b.SetBytes(int64(n * (protocol.ExtHeaderLen + payload)))
	b.ReportAllocs()
	for b.Loop() {
		if sent, err := conns[0].SendPackets(1, packets); sent != n || err != nil {
			b.Fatal(sent, err)
		}
		for got := 0; got < n; {
			m, err := conns[1].Recv(batch)
			if err != nil {
				b.Fatal(err)
			}
			got += m
		}
	}
}
