package tcp

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/transporttest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestNoAllocations(t *testing.T) {
	m := transporttest.Map(t, 2)
	var conns [2]*Conn
	batch := make([]mpe.Arrival, 4)
	for rank := range conns {
		c, err := Listen(Config{Rank: rank, Map: m, Backoff: soon})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[rank] = c
	}
	for _, c := range conns {
		if _, err := c.Recv(batch); err != nil || batch[0].Kind != mpe.ArrivedConnected {
			t.Fatalf("%+v, %v", batch[0], err)
		}
	}
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
	for range 100 { // until every buffer is made
		message()
	}
	// The reader's goroutine counts too, and may make another buffer.
	if n := testing.AllocsPerRun(500, message); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
