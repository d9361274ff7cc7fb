package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// delayData delays DATA, so that a receive can time out meanwhile.
func delayData(n *memnet.Net) {
	n.SetHook(func(_, _ int, b []byte) []time.Duration {
		if h, _, d := protocol.ParseExtended(b); d.OK() && h.Type == protocol.Data {
			return []time.Duration{20 * time.Millisecond}
		}
		return []time.Duration{time.Millisecond}
	})
}

// TestDetachedShortReceive checks that the sender sends no more bytes than the buffer of a short receive can
// hold. When this receive is detached, the next receive gets the received bytes, and an error that the message is
// truncated.
func TestDetachedShortReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		delayData(c.net)
		r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 1000)})
		data := pattern(100_000, 1)
		start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: data})
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		if _, err := r.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		buf := make([]byte, 100_000)
		st, err := c.engines[1].Recv(t.Context(), 0, buf, mpe.Options{})
		var te *mpe.TruncatedError
		if !errors.As(err, &te) || te.Posted != 1000 || te.Sent != 100_000 || st.Bytes != 100_000 ||
			!bytes.Equal(buf[:1000], data[:1000]) {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// TestCreditComesBack checks that credit is returned when a complete message is matched, and that a message
// that was complete earlier does not count as taken over.
func TestCreditComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.EagerBytes, x.EagerLimit = 4000, 1000 })
		defer c.close()
		for round := range 5 {
			for i := range 4 {
				if !eagerly(t, c, i) {
					t.Fatalf("round %d: message %d waits for credit", round, i)
				}
			}
			for i := range 4 {
				if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 1000), mpe.Options{Tag: i}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		if p := c.engines[1].Snapshot().Peers[0]; p.TakenOver != 0 || p.TakenOverBytes != 0 || p.Received != 20 {
			t.Errorf("%+v", p)
		}
	})
}

func eagerly(t *testing.T, c *cluster, tag int) bool {
	op := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tag, Buf: make([]byte, 1000)})
	time.Sleep(time.Second)
	return ended(op)
}

// TestTagOfAnUnclaimedMessage checks that a message that arrived for a detached receive has tag 0, as its profile
// carries no tags, or the tag of the receive that gets it.
func TestTagOfAnUnclaimedMessage(t *testing.T) {
	for _, opts := range []mpe.Options{{Tag: 9}, {AnyTag: true}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
			defer c.close()
			c.net.SetHook(func(from, _ int, b []byte) []time.Duration {
				if h, d := protocol.CloudFPGA.Parse(b); d.OK() && h.Type == protocol.Data {
					return []time.Duration{20 * time.Millisecond}
				}
				return []time.Duration{time.Millisecond}
			})
			r, _ := c.engines[1].Irecv(0, make([]byte, 4), mpe.Options{Tag: 5})
			c.engines[0].Isend(1, words(1, 1), mpe.Options{Tag: 5})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			r.Wait(ctx)
			time.Sleep(time.Second)
			st, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 4), opts)
			if err != nil || st.Tag != opts.Tag {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
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

// TestWaitersAreCounted checks that the count includes all waiting callers, and no others. Pollers poll for packets
// depending on this count.
func TestWaitersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		e := c.engines[0]
		want := func(n int) {
			t.Helper()
			synctest.Wait()
			if e.Waiting() != n {
				t.Errorf("%d wait, want %d", e.Waiting(), n)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: make([]byte, 8)})
		want(0)
		go r.Await(ctx)
		go e.Probe(ctx, mpe.Match{Source: 1, Tag: 9}, true)
		want(2)
		time.Sleep(2 * time.Second)
		want(0)
		// The caller is notified whether it asks before or after the end.
		ch := make(chan struct{}, 2)
		r = start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: make([]byte, 8)})
		r.Notify(ch)
		r.Notify(ch)
		want(1)
		c.engines[1].Send(t.Context(), 0, make([]byte, 8), mpe.Options{})
		<-ch
		want(0)
		r.Notify(ch)
		<-ch
		want(0)
		if _, err := r.Await(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSelfMessageLimit checks that the number of messages from a rank to itself is limited, and that they do not use
// the memory that is reserved for senders with credit.
func TestSelfMessageLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(2)
		c := &cluster{t: t, net: net}
		defer func() { c.close() }()
		for rank := range 2 {
			cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2), Limits: match.Limits{Unexpected: 4, Posted: 3}}
			cfg.Peers[1-rank] = mpe.Peer{Transport: net.Transport(rank),
				Extended: &extended.Config{Seed: uint64(rank) + 1, Messages: 10}}
			e, err := mpe.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.engines = append(c.engines, e)
		}
		e := c.engines[0]
		for i := range 5 {
			_, err := e.Isend(0, make([]byte, 8), mpe.Options{Tag: i})
			if errors.Is(err, mpe.ErrFull) != (i == 4) {
				t.Errorf("message %d to itself: %v", i, err)
			}
		}
		// A message that a receive waits for is not limited.
		if _, err := e.Irecv(0, make([]byte, 8), mpe.Options{Tag: 50}); err != nil {
			t.Error(err)
		}
		if _, err := e.Isend(0, make([]byte, 8), mpe.Options{Tag: 50}); err != nil {
			t.Errorf("a message to itself whose receive is posted: %v", err)
		}
		for i := range 10 {
			if _, err := c.engines[1].Send(t.Context(), 0, make([]byte, 8), mpe.Options{Tag: 100 + i}); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		for i := range 10 {
			if _, err := e.Recv(t.Context(), 1, make([]byte, 8), mpe.Options{Tag: 100 + i}); err != nil {
				t.Error(err)
			}
		}
		for i := range 4 {
			_, err := e.Irecv(1, make([]byte, 8), mpe.Options{Tag: i})
			if errors.Is(err, mpe.ErrFull) != (i == 3) {
				t.Errorf("receive %d: %v", i, err)
			}
		}
	})
}

// TestDetachedExtendedSendGoesOnWithACopy checks that a send detached in transfer continues with a copy, so
// that the caller can reuse its buffer.
func TestDetachedExtendedSendGoesOnWithACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.Window = 4 })
		defer c.close()
		c.net.SetHook(func(int, int, []byte) []time.Duration { return []time.Duration{time.Millisecond} })
		buf, data := make([]byte, 100_000), pattern(100_000, 1)
		r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf})
		mine := bytes.Clone(data)
		s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: mine})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := s.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		clear(mine)
		if _, err := r.Await(t.Context()); err != nil || !bytes.Equal(buf, data) {
			t.Errorf("%v, intact: %v", err, bytes.Equal(buf, data))
		}
	})
}

// TestScarceSendIsReported checks that a send that was announced because of scarce credit is reported as waiting
// for that reason, even if the peer has granted more credit since.
func TestScarceSendIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.Messages = 64 })
		defer c.close()
		scarce := func() bool { return c.engines[0].Snapshot().Peers[0].Extended.CreditScarce }
		ctx, stop := context.WithCancel(t.Context())
		sent, ended := 0, make(chan bool)
		go func() {
			defer close(ended)
			for {
				if _, err := c.engines[0].Send(ctx, 1, []byte("four"), mpe.Options{Tag: sent}); err != nil {
					return
				}
				sent++
			}
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		if sent < 50 || !scarce() {
			t.Fatalf("after %d of 64 messages credit is not scarce", sent)
		}
		for tag := range 41 { // not the waiting one
			if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 4), mpe.Options{Tag: tag}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if s := c.engines[0].Snapshot().Peers[0].Extended; s.MessageCredit < 32 || !s.CreditScarce {
			t.Errorf("credit of %d, scarce: %v", s.MessageCredit, s.CreditScarce)
		}
		stop()
		<-ended
	})
}

// TestReceiveFlushes checks that coalesced packets are sent when a receive is posted, because its caller may then
// compute for a long time.
func TestReceiveFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		exchangeTag(t, c, 1)
		time.Sleep(time.Second)
		packets := 0
		c.net.SetHook(func(from, _ int, _ []byte) []time.Duration {
			if from == 0 {
				packets++
			}
			return []time.Duration{0}
		})
		var ops []*mpe.Request
		posted := 0
		for ; posted < 10; posted++ { // until one waits
			before := packets
			ops = append(ops, must(c.engines[0].Isend(1, []byte("four"), mpe.Options{Tag: 2})))
			if packets == before {
				break
			}
		}
		if posted == 10 {
			t.Fatal("no packet waits for another")
		}
		before := packets
		ops = append(ops, must(c.engines[0].Irecv(1, make([]byte, 4), mpe.Options{Tag: 3})))
		if packets == before {
			t.Error("the packet still waits")
		}
		for range posted + 1 {
			must(c.engines[1].Recv(t.Context(), 0, make([]byte, 4), mpe.Options{Tag: 2}))
		}
		must(c.engines[1].Send(t.Context(), 0, []byte("four"), mpe.Options{Tag: 3}))
		for _, r := range ops {
			must(r.Wait(t.Context()))
		}
	})
}

func exchangeTag(t *testing.T, c *cluster, tag int) {
	t.Helper()
	r := must(c.engines[1].Irecv(0, make([]byte, 4), mpe.Options{Tag: tag}))
	must(c.engines[0].Send(t.Context(), 1, []byte("four"), mpe.Options{Tag: tag}))
	must(r.Wait(t.Context()))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
