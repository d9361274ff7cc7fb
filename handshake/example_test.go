package handshake_test

import (
	"fmt"
	"log"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Rank 0 sends two words to rank 1. The caller executes the actions of each event, and passes the packets from the peer
// to the Pair. Here it prints the actions, and makes the peer's packets itself.
func ExamplePair() {
	rules := handshake.SoftwarePeer()
	pair := handshake.New(handshake.Config{
		Local: 0, Remote: 1, Peer: rules, Shape: protocol.CPUShape(),
		Timing: handshake.DefaultTiming(rules), MaxWords: 1000,
	})
	carryOut := func(now handshake.Instant, actions []handshake.Action) {
		for _, a := range actions {
			switch a.Kind {
			case handshake.Transmit:
				fmt.Println("send", a.Header.Type)
			case handshake.TransmitData:
				fmt.Println("send", a.Header.Type, "with the payload of message", a.ID)
				pair.DataSent(now)
			case handshake.SendDone:
				fmt.Println("message", a.ID, "is done:", a.Err)
			}
		}
	}
	fromPeer := func(t protocol.Type) []byte {
		return protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Dst: 0, Size: 2, Type: t, Call: protocol.RecvInt})
	}

	actions, err := pair.Send(0, handshake.SendOp{ID: 7, Words: 2, Datatype: protocol.Int}, nil)
	if err != nil {
		log.Fatal(err)
	}
	carryOut(0, actions)
	deadline, _ := pair.Deadline()
	carryOut(deadline, pair.Tick(deadline, nil)) // no answer was received
	carryOut(deadline+1, pair.Datagram(deadline+1, fromPeer(protocol.ClearToSend), nil))
	carryOut(deadline+2, pair.Datagram(deadline+2, fromPeer(protocol.Ack), nil))
	// Output:
	// send SEND_REQUEST
	// send SEND_REQUEST
	// send DATA with the payload of message 7
	// message 7 is done: <nil>
}
