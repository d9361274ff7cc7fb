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
	"github.com/zrlmpi/zrlmpid/handshake"
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

func TestDetachedExtendedReceiveKeepsTheMessage(t *testing.T) {
	for _, n := range []int{5000, 50_000} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, 2, nil)
			defer c.close()
			c.net.SetHook(func(from, _ int, b []byte) []time.Duration {
				if h, _, d := protocol.ParseExtended(b); d.OK() && h.Type == protocol.Data && h.Offset > 0 &&
					h.Message == 1 {
					return []time.Duration{20 * time.Millisecond}
				}
				return []time.Duration{time.Millisecond}
			})
			first := make([]byte, n)
			r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: first})
			data := pattern(n, 9)
			s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: data})
			second := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: pattern(10, 8)})
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
			defer cancel()
			_, err := r.Await(ctx)
			var we *mpe.WaitError
			if !errors.As(err, &we) || !we.InTransfer || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			stored := bytes.Clone(first)
			for _, s := range []mpe.Op{s, second} {
				if _, err := s.Await(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			if !bytes.Equal(first, stored) {
				t.Error("the buffer was written to after it was returned")
			}
			// The message is still the first one.
			buf := make([]byte, n)
			st, err := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf}).Await(t.Context())
			if err != nil || st.Bytes != int64(n) || !bytes.Equal(buf, data) {
				t.Fatalf("%+v, %v", st, err)
			}
			st, err = start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf}).Await(t.Context())
			if err != nil || st.Bytes != 10 || !bytes.Equal(buf[:10], pattern(10, 8)) {
				t.Fatalf("%+v, %v", st, err)
			}
		})
	}
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

// TestAnySourceOverProfiles checks that receives from any source get messages from peers of each profile.
func TestAnySourceOverProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(4)
		var engines []*mpe.Engine
		hs := func(p protocol.Profile) mpe.Peer {
			return mpe.Peer{Handshake: handshake.Config{Profile: p, Shape: protocol.CPUShape(),
				Timing: handshake.DefaultTiming(handshake.PeerRules{}), MaxWords: 1 << 20}}
		}
		for rank := range 4 {
			cfg, tr := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 4)}, net.Transport(rank)
			for p := range 4 {
				switch max(rank, p) {
				case 1:
					cfg.Peers[p] = hs(protocol.CloudFPGA)
				case 2:
					cfg.Peers[p] = hs(protocol.V09)
				default:
					cfg.Peers[p].Extended = &extended.Config{Seed: uint64(4*rank + p + 1)}
				}
				if rank > 0 && p > 0 {
					cfg.Peers[p] = hs(protocol.CloudFPGA)
				}
				cfg.Peers[p].Transport = tr
			}
			e, err := mpe.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			engines = append(engines, e)
		}
		c := &cluster{t: t, net: net, engines: engines}
		defer c.close()
		for i, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}} {
			var bufs [3][]byte
			var ops []mpe.Op
			for j := range 3 {
				bufs[j] = make([]byte, 4000)
				ops = append(ops, start(t, engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: mpe.AnyTag, Buf: bufs[j],
						AnyDatatype: true}))
			}
			for j, src := range order {
				tag := 0
				if src > 1 {
					tag = 10*src + i
				}
				data := pattern(4*(100+src), uint64(src))
				if _, err := engines[src].Send(t.Context(), 0, data, mpe.Options{Tag: tag}); err != nil {
					t.Fatal(err)
				}
				st, err := ops[j].Await(t.Context())
				if err != nil || st.Peer != src || st.Tag != tag || st.Bytes != int64(len(data)) ||
					!bytes.Equal(bufs[j][:len(data)], data) {
					t.Fatalf("from %d: %+v, %v", src, st, err)
				}
			}
		}
	})
}

// TestV09MatchesByTag checks that v0.9 carries tags: receives that are posted in a different order from the sends
// get the right messages, as far as one handshake at a time permits.
func TestV09MatchesByTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), func(h *handshake.Config) { h.Profile = protocol.V09 })
		defer c.close()
		var recvs [3]*mpe.Request
		var bufs [3][]byte
		for i, tag := range []int{3, 1, 2} {
			bufs[i] = make([]byte, 4)
			recvs[i], _ = c.engines[1].Irecv(0, bufs[i], mpe.Options{Tag: tag})
		}
		for _, tag := range []int{1, 2, 3} {
			if _, err := c.engines[0].Send(t.Context(), 1, words(1, uint32(tag)), mpe.Options{Tag: tag}); err != nil {
				t.Fatal(err)
			}
		}
		for i, tag := range []int{3, 1, 2} {
			if st, err := recvs[i].Wait(t.Context()); err != nil || st.Tag != tag ||
				!bytes.Equal(bufs[i], words(1, uint32(tag))) {
				t.Errorf("tag %d: %+v, %v", tag, st, err)
			}
		}
	})
}

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

// TestRefusedWithoutCredit checks that a rank's memory for unmatched messages is bounded by the credit that it
// grants. A send beyond this limit is refused. This happens in its call, after a wait for memory, or later if the
// caller cannot wait. Receives free memory.
func TestRefusedWithoutCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.Messages, x.EagerBytes, x.EagerLimit = 8, 4000, 1000 })
		defer c.close()
		send := func(i int, noWait bool) (mpe.Op, error) {
			return c.engines[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: i, Buf: pattern(1000, uint64(i)),
				NoWait: noWait})
		}
		var sends []mpe.Op
		for i := range 8 {
			s, err := send(i, false)
			if err != nil {
				t.Fatal(err)
			}
			sends = append(sends, s)
		}
		begun := time.Now()
		var full *mpe.PeerFullError
		if _, err := send(8, false); !errors.Is(err, mpe.ErrFull) || !errors.As(err, &full) ||
			*full != (mpe.PeerFullError{Local: 0, Peer: 1}) {
			t.Errorf("the ninth message: %v", err)
		}
		waited := time.Since(begun)
		if waited < time.Second || waited > 3*time.Second { // the peer is asked every second
			t.Errorf("it waited for %v", waited)
		}
		if _, err := send(8, false); !errors.Is(err, mpe.ErrFull) || time.Since(begun) != waited {
			t.Errorf("another one: %v after %v", err, time.Since(begun))
		}
		late, err := send(8, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := late.Await(t.Context()); !errors.Is(err, mpe.ErrFull) ||
			time.Since(begun) < waited+time.Second || time.Since(begun) > waited+3*time.Second {
			t.Errorf("one whose caller cannot wait: %v after %v", err, time.Since(begun))
		}
		for i, s := range sends {
			if ended(s) != (i < 4) { // 4,000 bytes
				t.Errorf("send %d is done: %v", i, ended(s))
			}
		}
		if n := c.engines[1].Snapshot().Unexpected; n != 8 {
			t.Errorf("%d messages wait at the receiver, want 8", n)
		}
		// A send for which memory is freed while it waits is sent, whatever else is waiting.
		time.AfterFunc(500*time.Millisecond, func() {
			for i := range 2 {
				if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 1000), mpe.Options{Tag: i}); err != nil {
					t.Error(err)
				}
			}
		})
		if late, err = send(8, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond)
		if s, err := send(9, false); err != nil {
			t.Error(err)
		} else {
			sends = append(sends, late, s)
		}
		for i := 2; i < 10; i++ {
			buf := make([]byte, 1000)
			if _, err := c.engines[1].Recv(t.Context(), 0, buf, mpe.Options{Tag: i}); err != nil ||
				!bytes.Equal(buf, pattern(1000, uint64(i))) {
				t.Fatalf("message %d: %v", i, err)
			}
			if _, err := sends[i].Await(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMemoryAfterRefusal checks that a send succeeds after a refusal if the program has learned from a message from
// the peer that there is memory again, even before an ACK from the peer states it.
func TestMemoryAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.Messages = 2 })
		defer c.close()
		send := func(tag int) error {
			_, err := c.engines[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tag, Buf: pattern(8, 1)})
			return err
		}
		if err := errors.Join(send(0), send(1)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := send(2); !errors.Is(err, mpe.ErrFull) {
				t.Fatal(err)
			}
		}
		c.net.SetHook(func(from, _ int, packet []byte) []time.Duration {
			if h, _, _ := protocol.ParseExtended(packet); from == 1 && h.Type == protocol.Ack {
				return []time.Duration{300 * time.Millisecond}
			}
			return []time.Duration{0}
		})
		time.Sleep(time.Millisecond)
		for tag := range 2 {
			if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 8), mpe.Options{Tag: tag}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, c.engines[1], mpe.Operation{Kind: mpe.OpSend, Peer: 0, Buf: pattern(8, 1)})
		if _, err := c.engines[0].Recv(t.Context(), 1, make([]byte, 8), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := send(2); err != nil {
			t.Error(err)
		}
	})
}

// TestSilenceIsNoRefusal checks that a peer's silence is not mistaken for a lack of memory: sends that wait for
// credit are not refused while the network is down, and are sent when it recovers.
func TestSilenceIsNoRefusal(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, 2, func(x *extended.Config) { x.Messages = 2 })
			defer c.close()
			send := func(tag int) mpe.Op {
				return start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tag, Buf: pattern(1000, 1),
					NoWait: noWait})
			}
			sends := []mpe.Op{send(0)}
			time.Sleep(2 * time.Second)
			c.net.SetHook(func(int, int, []byte) []time.Duration { return nil })
			sends = append(sends, send(1)) // uses the rest of the credit, and is lost
			receive := make(chan error, 1)
			time.AfterFunc(3*time.Second, func() {
				c.net.SetHook(nil)
				for tag := range 3 {
					_, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 1000), mpe.Options{Tag: tag})
					if err != nil {
						receive <- err
						return
					}
				}
				receive <- nil
			})
			sends = append(sends, send(2))
			for i, s := range sends {
				if _, err := s.Await(t.Context()); err != nil {
					t.Errorf("send %d, NoWait %v: %v", i, noWait, err)
				}
			}
			if err := <-receive; err != nil {
				t.Error(err)
			}
		})
	}
}
