package mpe_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestReconfigure checks that a message in progress keeps its deadline, that the next one has the new
// deadline, and that the log names the new address.
func TestReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deadline := func(d time.Duration) func(*handshake.Config) {
			return func(hs *handshake.Config) { hs.Timing.ClearDeadline = d }
		}
		c := newCluster(t, 2, handshake.SoftwarePeer(), deadline(time.Minute))
		defer c.close()
		began := time.Now()
		first, err := c.engines[0].Isend(1, words(1, 1), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		peers := make([]mpe.Peer, 2)
		peers[1] = mpe.Peer{Address: "elsewhere",
			Handshake: handshake.Config{Timing: handshake.DefaultTiming(handshake.SoftwarePeer())}}
		deadline(time.Second)(&peers[1].Handshake)
		c.engines[0].Reconfigure(peers)
		if info, err := c.engines[0].Peer(1); err != nil || info.Address != "elsewhere" {
			t.Errorf("%+v, %v", info, err)
		}
		_, err = first.Wait(t.Context())
		if took := time.Since(began); !errors.Is(err, handshake.ErrTimeout) || took < time.Minute {
			t.Errorf("the message in flight ended after %v: %v", took, err)
		}
		began = time.Now()
		_, err = c.engines[0].Send(t.Context(), 1, words(1, 1), mpe.Options{})
		if took := time.Since(began); !errors.Is(err, handshake.ErrTimeout) || took > 2*time.Second {
			t.Errorf("the next message ended after %v: %v", took, err)
		}
	})
}

// TestCloseReportsUnfinished checks that Close reports the operations that it cuts off: the waiting rank, its peer and
// the awaited packet.
func TestCloseReportsUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		defer c.close()
		c.net.SetHook(func(_, _ int, packet []byte) []time.Duration {
			if h, defect := protocol.CloudFPGA.Parse(packet); defect.OK() && h.Type == protocol.Ack {
				return nil
			}
			return []time.Duration{time.Microsecond}
		})
		if _, err := c.engines[1].Irecv(0, make([]byte, 4), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.engines[0].Isend(1, words(1, 1), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // of the bubble
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.engines[0].Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("it ended with %v", err)
		}
		cut := c.engines[0].Unfinished()
		if len(cut) != 1 || cut[0].For != protocol.Ack || cut[0].Remote != 1 ||
			!strings.Contains(cut[0].Text(), "rank 0 waits for ACK from rank 1") {
			t.Errorf("%+v", cut)
		}
	})
}

// TestHeartbeat checks that a live engine answers, whether a caller polls or not, and even when closed. An
// engine whose lock is held does not answer.
func TestHeartbeat(t *testing.T) {
	c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e := c.engines[0]
	if err := e.Heartbeat(ctx); err != nil {
		t.Error(err)
	}
	r, err := e.Irecv(1, make([]byte, 4), mpe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := r.Wait(ctx)
		ended <- err
	}()
	if err := e.Heartbeat(ctx); err != nil {
		t.Error(err)
	}
	unlock := mpe.Lock(e)
	short, over := context.WithTimeout(ctx, 10*time.Millisecond)
	if err := e.Heartbeat(short); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "its lock is not released") {
		t.Errorf("an engine whose lock is held: %v", err)
	}
	over()
	unlock()
	c.close()
	if err := <-ended; !errors.Is(err, mpe.ErrClosed) {
		t.Error(err)
	}
	if err := e.Heartbeat(ctx); err != nil {
		t.Errorf("a closed engine: %v", err)
	}
}
