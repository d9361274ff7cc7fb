package mpe_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestCloudFPGAThroughLoss checks the cloudfpga profile with loss and duplication: every message arrives
// once, in order and intact, or its send fails with one of the documented errors. Only packets that begin
// with a header are duplicated, without delay: section 11 of the protocol lists the damage that the wire
// cannot detect.
func TestCloudFPGAThroughLoss(t *testing.T) {
	standin := handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true}
	for _, tt := range []struct {
		name     string
		sender   handshake.PeerRules
		receiver handshake.Quirks
		words    int
		errors   []error
	}{
		{"software, one datagram", handshake.SoftwarePeer(), handshake.Quirks{}, 346, nil},
		{"software, fragmented messages", handshake.SoftwarePeer(), handshake.Quirks{}, 2000,
			[]error{handshake.ErrTimeout}},
		// A stand-in acknowledges once, as an FPGA does: a lost ACK leaves the sender in doubt.
		{"stand-in", handshake.FPGAPeer(1), standin, 346, []error{handshake.ErrTimeout}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := memnet.New(2)
				rng := rand.New(rand.NewPCG(11, 12))
				net.SetHook(func(_, _ int, b []byte) []time.Duration {
					_, defect := protocol.CloudFPGA.Parse(b)
					switch x := rng.IntN(100); {
					case x < 5:
						return nil
					case x < 10 && defect.OK():
						return []time.Duration{10 * time.Microsecond, 10 * time.Microsecond}
					}
					return []time.Duration{10 * time.Microsecond}
				})
				c := &cluster{t: t, net: net}
				for rank := range 2 {
					hs := handshake.Config{Peer: tt.sender, Shape: protocol.CPUShape(),
						Timing: handshake.DefaultTiming(tt.sender), MaxWords: 1 << 20}
					if rank == 1 {
						hs = handshake.Config{Quirks: tt.receiver, Shape: protocol.CPUShape(),
							Timing: handshake.DefaultTiming(handshake.PeerRules{}), MaxWords: 1 << 20}
						if tt.receiver != (handshake.Quirks{}) {
							hs.Timing = handshake.DeployedFPGA(1)
						}
					}
					cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
					cfg.Peers[1-rank] = mpe.Peer{Handshake: hs, Transport: net.Transport(rank)}
					e, err := mpe.New(cfg)
					if err != nil {
						t.Fatal(err)
					}
					c.engines = append(c.engines, e)
				}
				lossySend(t, c, tt.words, tt.errors)
			})
		})
	}
}

func lossySend(t *testing.T, c *cluster, maxWords int, documented []error) {
	const messages = 4000
	received := make([]bool, messages)
	done := make(chan struct{})
	go func() {
		defer close(done)
		last, buf := -1, make([]byte, 4*maxWords)
		for {
			st, err := c.engines[1].Recv(t.Context(), 0, buf, mpe.Options{})
			if err != nil {
				if errors.Is(err, handshake.ErrTimeout) {
					continue // the sender timed out in the middle
				}
				return
			}
			i := int(binary.LittleEndian.Uint32(buf))
			if i <= last || i >= messages || !bytes.Equal(buf[:st.Bytes], lossyMessage(i, maxWords)) {
				t.Errorf("after message %d came %d, %d bytes, or it is corrupt", last, i, st.Bytes)
				return
			}
			last, received[i] = i, true
		}
	}()
	failed := 0
	for i := range messages {
		_, err := c.engines[0].Send(t.Context(), 1, lossyMessage(i, maxWords), mpe.Options{})
		if err == nil {
			synctest.Wait()
			if !received[i] {
				t.Fatalf("message %d was acknowledged and not received", i)
			}
			continue
		}
		failed++
		known := false
		for _, d := range documented {
			known = known || errors.Is(err, d)
		}
		if !known {
			t.Fatalf("message %d: %v", i, err)
		}
		// Restart both sides, as a user does after such an error.
		time.Sleep(time.Minute)
		for rank, e := range c.engines {
			if err := e.Reset(1 - rank); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.close()
	<-done
	t.Logf("%d of %d sends failed with a documented error", failed, messages)
	if len(documented) > 0 == (failed == 0) {
		t.Errorf("%d sends failed", failed)
	}
}

func lossyMessage(i, maxWords int) []byte {
	rng := rand.New(rand.NewPCG(uint64(i), 2))
	b := make([]byte, 4*(1+rng.IntN(maxWords)))
	for j := range b {
		b[j] = byte(rng.Uint32())
	}
	binary.LittleEndian.PutUint32(b, uint32(i))
	return b
}
