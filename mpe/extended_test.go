package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// newExtended starts n engines connected by the extended profile.
func newExtended(t testing.TB, n int, change func(*extended.Config)) *cluster {
	t.Helper()
	return newExtendedWith(t, n, change, nil)
}

// newExtendedWith also lets engine change the engines' configuration.
func newExtendedWith(t testing.TB, n int, change func(*extended.Config), engine func(*mpe.Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, net: memnet.New(n)}
	for rank := range n {
		tr := c.net.Transport(rank)
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, n)}
		for p := range cfg.Peers {
			x := &extended.Config{Seed: uint64(rank*n+p) + 1, MaxLength: 1 << 24}
			if change != nil {
				change(x)
			}
			cfg.Peers[p] = mpe.Peer{Extended: x, Transport: tr}
		}
		if engine != nil {
			engine(&cfg)
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.engines = append(c.engines, e)
	}
	return c
}

func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func start(t *testing.T, e *mpe.Engine, op mpe.Operation) mpe.Op {
	t.Helper()
	o, err := e.Start(op)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ended(o mpe.Op) bool {
	_, ok, _ := o.Test()
	return ok
}

func TestExtendedSendRecv(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		for _, n := range []int{0, 1, 3, 1335, 1336, 1337, 65536, 65537, 100_001} {
			for _, kind := range []mpe.OpKind{mpe.OpSend, mpe.OpSendSync} {
				for _, late := range []bool{false, true} {
					data, buf := pattern(n, uint64(n)), make([]byte, n)
					recv := mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: 70000, Comm: 4, Buf: buf}
					var r mpe.Op
					if !late {
						r = start(t, c.engines[1], recv)
					}
					s := start(t, c.engines[0], mpe.Operation{Kind: kind, Peer: 1, Tag: 70000, Comm: 4, Buf: data})
					if late {
						time.Sleep(10 * time.Second)
						if eager := n <= 65536 && kind == mpe.OpSend; ended(s) != eager {
							t.Errorf("%d bytes, kind %d: done before a receive: %v", n, kind, ended(s))
						}
						r = start(t, c.engines[1], recv)
					}
					if _, err := s.Await(t.Context()); err != nil {
						t.Fatalf("%d bytes: %v", n, err)
					}
					st, err := r.Await(t.Context())
					if err != nil || st.Bytes != int64(n) || st.Tag != 70000 || st.Comm != 4 || st.Peer != 0 ||
						!bytes.Equal(buf, data) {
						t.Fatalf("%d bytes: %+v, %v, intact %v", n, st, err, bytes.Equal(buf, data))
					}
				}
			}
		}
	})
}

// TestCopyRule checks that a receive posted while its message is arriving takes over the rest.
func TestCopyRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		// The packets of the message arrive a millisecond apart.
		n := 0
		c.net.SetHook(func(from, _ int, b []byte) []time.Duration {
			if h, _, d := protocol.ParseExtended(b); d.OK() && h.Type == protocol.Data {
				n++
				return []time.Duration{time.Duration(n) * time.Millisecond}
			}
			return []time.Duration{time.Microsecond}
		})
		data, buf := pattern(13360, 1), make([]byte, 13360)
		s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: data})
		time.Sleep(4*time.Millisecond + 500*time.Microsecond)
		r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf})
		if !bytes.Equal(buf[:4*1336], data[:4*1336]) || bytes.Equal(buf, data) {
			t.Error("the received bytes are not in the buffer as soon as the receive is posted")
		}
		if _, err := s.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Await(t.Context()); err != nil || !bytes.Equal(buf, data) {
			t.Fatalf("%v, intact %v", err, bytes.Equal(buf, data))
		}
		if p := c.engines[1].Snapshot().Peers[0]; p.TakenOver != 1 || p.TakenOverBytes != 6*1336 {
			t.Errorf("%d messages and %d bytes were taken over, want 1 and %d", p.TakenOver, p.TakenOverBytes, 6*1336)
		}
	})
}

func TestExtendedTruncation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		for _, n := range []int{100, 50_000} {
			for _, late := range []bool{false, true} {
				data, buf := pattern(n, 3), make([]byte, 37)
				recv := mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf}
				var r mpe.Op
				if !late {
					r = start(t, c.engines[1], recv)
				}
				s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: data})
				if late {
					time.Sleep(time.Second)
					r = start(t, c.engines[1], recv)
				}
				if _, err := s.Await(t.Context()); err != nil {
					t.Fatal(err)
				}
				st, err := r.Await(t.Context())
				var te *mpe.TruncatedError
				if !errors.Is(err, mpe.ErrTruncated) || !errors.As(err, &te) || te.Sent != int64(n) ||
					te.Posted != 37 || st.Bytes != int64(n) || !bytes.Equal(buf, data[:37]) {
					t.Errorf("%d bytes, late %v: %+v, %v", n, late, st, err)
				}
			}
		}
	})
}

func TestExtendedCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		// A receive that no message has matched.
		r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 8)})
		r.Cancel()
		if _, err := r.Await(t.Context()); !errors.Is(err, mpe.ErrCancelled) {
			t.Errorf("receive: %v", err)
		}
		// A send that the peer knows of, and that no receive has matched.
		s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: pattern(8, 1)})
		time.Sleep(time.Second)
		s.Cancel()
		if _, err := s.Await(t.Context()); !errors.Is(err, mpe.ErrCancelled) {
			t.Errorf("send: %v", err)
		}
		if n := c.engines[1].Snapshot().Unexpected; n != 0 {
			t.Errorf("%d messages wait at the peer", n)
		}
		// A matched send, and a completed one.
		buf := make([]byte, 8)
		r = start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf})
		s = start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: pattern(8, 2)})
		time.Sleep(time.Second)
		s.Cancel()
		r.Cancel()
		if _, err := s.Await(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := r.Await(t.Context()); err != nil || !bytes.Equal(buf, pattern(8, 2)) {
			t.Error(err)
		}
	})
}

func TestSelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 1, nil)
		defer c.close()
		e := c.engines[0]
		for _, n := range []int{0, 10, 1 << 20} {
			data, buf := pattern(n, 1), make([]byte, n)
			r := start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: mpe.AnyTag, Buf: buf})
			s := start(t, e, mpe.Operation{Kind: mpe.OpSendSync, Peer: 0, Tag: 5, Buf: data})
			if _, err := s.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st, err := r.Await(t.Context()); err != nil || st.Peer != 0 || st.Tag != 5 || !bytes.Equal(buf, data) {
				t.Fatalf("%+v, %v", st, err)
			}
			// The rank sends first, which works because a small message is buffered.
			clear(buf)
			s = start(t, e, mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: 6, Buf: data})
			if ended(s) != (n <= 64<<10) {
				t.Errorf("%d bytes: ended %v", n, ended(s))
			}
			if st, ok, err := e.Probe(t.Context(), mpe.Match{Source: 0, Tag: 6}, false); !ok || err != nil ||
				st.Bytes != int64(n) {
				t.Errorf("probe: %+v, %v, %v", st, ok, err)
			}
			if _, err := start(t, e,
				mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: 6, Buf: buf}).Await(t.Context()); err != nil ||
				!bytes.Equal(buf, data) {
				t.Fatal(err)
			}
		}
		s := start(t, e, mpe.Operation{Kind: mpe.OpSendSync, Peer: 0, Buf: nil})
		s.Cancel()
		if _, err := s.Await(t.Context()); !errors.Is(err, mpe.ErrCancelled) {
			t.Error(err)
		}
	})
}

// TestProbe checks that a probe waits, finds a message, and does not receive it.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		if _, ok, err := c.engines[0].Probe(t.Context(), mpe.Match{Source: mpe.AnySource, Tag: mpe.AnyTag},
			false); ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		go func() {
			time.Sleep(time.Second)
			c.engines[1].Send(t.Context(), 0, pattern(100, 1), mpe.Options{Tag: 8})
			time.Sleep(time.Second)
			c.engines[2].Send(t.Context(), 0, pattern(100_000, 1), mpe.Options{Tag: 9})
		}()
		st, ok, err := c.engines[0].Probe(t.Context(), mpe.Match{Source: mpe.AnySource, Tag: 9}, true)
		if !ok || err != nil || st.Peer != 2 || st.Tag != 9 || st.Bytes != 100_000 {
			t.Fatalf("%+v, %v, %v", st, ok, err)
		}
		for _, want := range []int{1, 2} {
			buf := make([]byte, 100_000)
			if st, err := start(t, c.engines[0],
				mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: mpe.AnyTag,
					Buf: buf}).Await(t.Context()); err != nil || st.Peer != want {
				t.Fatalf("%+v, %v", st, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.engines[0].Probe(ctx, mpe.Match{Source: 1, Tag: 3}, true); !errors.Is(err,
			context.DeadlineExceeded) ||
			err.Error() != "rank 0 waits for a message from rank 1 with tag 3 to probe: context deadline exceeded" {
			t.Error(err)
		}
	})
}

func TestExtendedWaitsSayWhatFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		e := c.engines[0]
		e.Send(t.Context(), 1, pattern(1, 1), mpe.Options{})
		start(t, e, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Tag: 4, Buf: pattern(100, 1)})
		start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: 6, Buf: make([]byte, 8)})
		start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: 7, Comm: 2, Buf: make([]byte, 8)})
		c.net.SetHook(func(_, to int, _ []byte) []time.Duration {
			if to == 2 {
				return nil
			}
			return []time.Duration{time.Microsecond}
		})
		start(t, e, mpe.Operation{Kind: mpe.OpSend, Peer: 2, Buf: pattern(1, 1)})
		time.Sleep(4 * time.Second)
		want := map[string]bool{
			"rank 0 waits for rank 1 to post the receive of 100 bytes with tag 4":         true,
			"rank 0 waits for an answer from rank 2; no packet was ever received from it": true,
			"rank 0 waits for a message from rank 1 with tag 6":                           true,
			"rank 0 waits for a message from any rank with tag 7 in communicator 2":       true,
		}
		for _, w := range e.Waits(3 * time.Second) {
			if !want[w.Text()] {
				t.Errorf("says %q", w.Text())
			}
			delete(want, w.Text())
		}
		for text := range want {
			t.Errorf("does not say %q", text)
		}
		s := e.Snapshot()
		if s.Posted != 2 || s.AnySource == nil || s.Peers[0].Sending == nil || s.Peers[0].Receiving == nil ||
			c.engines[1].Snapshot().Unexpected != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestManyOutstanding matches thirty thousand announced messages in reverse order.
func TestManyOutstanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		const n = 30000
		var sends []mpe.Op
		for i := range n {
			sends = append(sends, start(t, c.engines[0],
				mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: i, Buf: fmt.Appendf(nil, "%064d", i)}))
		}
		time.Sleep(time.Second)
		for i := n - 1; i >= 0; i-- {
			buf := make([]byte, 64)
			if _, err := c.engines[1].Recv(t.Context(), 0, buf, mpe.Options{Tag: i}); err != nil ||
				string(buf) != fmt.Sprintf("%064d", i) {
				t.Fatalf("message %d: %q, %v", i, buf, err)
			}
		}
		for i, s := range sends {
			if _, err := s.Await(t.Context()); err != nil {
				t.Fatalf("send %d: %v", i, err)
			}
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
