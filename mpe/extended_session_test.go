package mpe_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestExtendedSessions checks that when peers are restarted or disappear, operations in progress with them
// fail with a descriptive error, and later messages succeed.
func TestExtendedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer func() { c.close() }()
		if _, err := c.engines[0].Send(t.Context(), 1, pattern(10, 1), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		big := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: pattern(100_000, 1)})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.engines[1].Close(ctx)
		if _, err := big.Await(t.Context()); !errors.Is(err, extended.ErrSession) {
			t.Errorf("the peer shut down: %v", err)
		}
	})
}

// failures collects the failed messages that an engine reports.
type failures struct {
	mpe.Observer
	mu   sync.Mutex
	errs []error
}

func (f *failures) Done(_ int, s mpe.Status, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.errs = append(f.errs, err)
	}
}
func (*failures) Dropped(int, int, mpe.Drop) {}
func (*failures) CallFailed(int, error)      {}
func (*failures) Noted(int, int, mpe.Note)   {}
func (*failures) TransportError(int, error)  {}

// TestLostEagerMessageIsReported checks that the observer is notified of an eager message that is complete
// for its sender, but can never arrive.
func TestLostEagerMessageIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, seen := memnet.New(2), &failures{}
		var engines [2]*mpe.Engine
		for rank := range engines {
			cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2), Observer: seen}
			cfg.Peers[1-rank] = mpe.Peer{Transport: net.Transport(rank),
				Extended: &extended.Config{Seed: uint64(rank) + 1}}
			var err error
			if engines[rank], err = mpe.New(cfg); err != nil {
				t.Fatal(err)
			}
		}
		c := &cluster{t: t, net: net, engines: engines[:]}
		defer c.close()
		engines[0].Send(t.Context(), 1, []byte("known"), mpe.Options{})
		time.Sleep(time.Second)                                            // it is acknowledged
		net.SetHook(func(int, int, []byte) []time.Duration { return nil }) // the cable is unplugged
		if _, err := engines[0].Send(t.Context(), 1, []byte("lost"), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if len(seen.errs) != 1 || !errors.Is(seen.errs[0], extended.ErrTimeout) {
			t.Errorf("%v were reported", seen.errs)
		}
		if p := engines[0].Snapshot().Peers[0]; p.Failed != 1 {
			t.Errorf("%d failures", p.Failed)
		}
	})
}

// TestCloseCancelsAnnouncedSends checks that an unmatched send ends with its rank, and is cancelled at the peer.
func TestCloseCancelsAnnouncedSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		op := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: pattern(100_000, 1)})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.engines[0].Close(ctx); err != nil {
			t.Error(err)
		}
		if _, err := op.Await(t.Context()); !errors.Is(err, mpe.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if n := c.engines[1].Snapshot().Unexpected; n != 0 {
			t.Errorf("%d messages are left at the peer", n)
		}
	})
}
