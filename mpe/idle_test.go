package mpe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestIdleEngineSetsNoTimer checks that the clock does not wake an idle rank, whatever profile its peers have.
func TestIdleEngineSetsNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(3)
		var engines [3]*mpe.Engine
		for rank := range engines {
			cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, len(engines))}
			tr := net.Transport(rank)
			for peer := range cfg.Peers {
				cfg.Peers[peer] = mpe.Peer{Transport: tr, Handshake: handshake.Config{
					Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.SoftwarePeer()),
					MaxWords: 1000,
				}}
				if rank+peer != 1 { // ranks 0 and 1 use cloudfpga
					cfg.Peers[peer].Extended = &extended.Config{Seed: uint64(10*rank + peer + 1)}
				}
			}
			var err error
			if engines[rank], err = mpe.New(cfg); err != nil {
				t.Fatal(err)
			}
		}
		ctx := context.Background()
		for peer := 1; peer < len(engines); peer++ {
			got, err := engines[peer].Irecv(0, make([]byte, 400), mpe.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := engines[0].Send(ctx, peer, make([]byte, 400), mpe.Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := got.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if engines[0].Idle() {
			t.Error("it waits for no acknowledgement")
		}
		// The bubble's clock advances only when all goroutines are blocked.
		<-time.After(10 * time.Second)
		synctest.Wait()
		for rank, e := range engines {
			if !e.Idle() {
				t.Errorf("rank %d has set a timer", rank)
			}
			if err := e.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}
