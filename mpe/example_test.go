package mpe_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// Two engines on a network in memory exchange a message of two words.
func ExampleEngine() {
	ctx := context.Background()
	network, rules := memnet.New(2), handshake.SoftwarePeer()
	var engines []*mpe.Engine
	for rank := range 2 {
		peer := mpe.Peer{
			Handshake: handshake.Config{Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules),
				MaxWords: 1000},
			Transport: network.Transport(rank),
		}
		e, err := mpe.New(mpe.Config{Rank: rank, Peers: []mpe.Peer{peer, peer}})
		if err != nil {
			log.Fatal(err)
		}
		defer e.Close(ctx)
		engines = append(engines, e)
	}

	send, err := engines[0].Isend(1, []byte{1, 2, 3, 4, 5, 6, 7, 8}, mpe.Options{})
	if err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 16)
	status, err := engines[1].Recv(ctx, 0, buf, mpe.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := send.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Words, "words from rank", status.Peer, buf[:4*status.Words])
	// Output: 2 words from rank 0 [1 2 3 4 5 6 7 8]
}
