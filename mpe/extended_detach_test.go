package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

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
