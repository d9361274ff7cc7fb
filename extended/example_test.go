package extended_test

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Two connections exchange packets until a short message from rank 0 to rank 1 is done on both sides. The caller
// executes the actions of each event: it sends packets, and matches each opened message with a receive.
func ExampleConn() {
	payload := []byte("hello")
	conns := [2]*extended.Conn{
		extended.New(extended.Config{Local: 0, Remote: 1, Seed: 1}),
		extended.New(extended.Config{Local: 1, Remote: 0, Seed: 2}),
	}
	received := make([]byte, len(payload))
	var inFlight [2][][]byte // packets to each rank
	carryOut := func(rank int, now extended.Instant, actions []extended.Action) {
		for _, a := range actions {
			switch a.Kind {
			case extended.Transmit:
				packet := protocol.AppendExtended(nil, &a.Header, payload[a.Offset:][:a.Length])
				inFlight[1-rank] = append(inFlight[1-rank], packet)
			case extended.TransmitAck:
				inFlight[1-rank] = append(inFlight[1-rank], protocol.AppendExtended(nil, &a.Header, a.Payload))
			case extended.Open:
				fmt.Printf("rank %d: a message of %d bytes with tag %d\n", rank, a.Length, a.Tag)
				conns[rank].Accept(now, a.Message, int64(len(received)), nil)
			case extended.Copy:
				copy(received[a.Offset:], a.Payload)
			case extended.Arrived:
				fmt.Printf("rank %d: received %s\n", rank, received)
			case extended.SendDone:
				fmt.Printf("rank %d: the send is done: %v\n", rank, a.Err)
			}
		}
	}

	const step = extended.Instant(1e6) // a millisecond
	conns[0].Send(0, extended.SendOp{ID: 1, Length: int64(len(payload)), Tag: 7}, nil)
	for now := step; now < 10*step; now += step {
		for rank, c := range conns {
			packets := inFlight[rank]
			inFlight[rank] = nil
			for _, packet := range packets {
				carryOut(rank, now, c.Packet(now, packet, nil))
			}
			carryOut(rank, now, c.Tick(now, nil))
			carryOut(rank, now, c.Flush(now, nil))
		}
	}
	// Output:
	// rank 1: a message of 5 bytes with tag 7
	// rank 1: received hello
	// rank 0: the send is done: <nil>
}
