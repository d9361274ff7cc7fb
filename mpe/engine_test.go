package mpe_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// cluster is a set of engines on a network in memory, inside a synctest bubble.
type cluster struct {
	t       testing.TB
	net     *memnet.Net
	engines []*mpe.Engine
}

// newCluster starts n engines that use the same rules for each other.
func newCluster(t *testing.T, n int, rules handshake.PeerRules, change func(*handshake.Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, net: memnet.New(n)}
	for rank := range n {
		tr := c.net.Transport(rank)
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, n)}
		for p := range cfg.Peers {
			hs := handshake.Config{Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules),
				MaxWords: 1 << 20}
			if change != nil {
				change(&hs)
			}
			cfg.Peers[p] = mpe.Peer{Handshake: hs, Transport: tr}
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.engines = append(c.engines, e)
	}
	return c
}

func (c *cluster) close() {
	var all sync.WaitGroup
	for _, e := range c.engines {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			e.Close(ctx)
		})
	}
	all.Wait()
}

func words(n int, seed uint32) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(b[4*i:], seed<<16^uint32(i)*0x9e3779b9)
	}
	return b
}

func TestSendRecv(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		defer c.close()
		for _, n := range []int{0, 1, 2, 346, 347, 348, 1000, 100_000} {
			data, buf := words(n, 1), make([]byte, 4*n)
			r, err := c.engines[1].Irecv(0, buf, mpe.Options{})
			if err != nil {
				t.Fatal(err)
			}
			st, err := c.engines[0].Send(t.Context(), 1, data, mpe.Options{})
			if err != nil || st.Peer != 1 || !st.Send || st.Words != uint32(n) {
				t.Fatalf("%d words: %+v, %v", n, st, err)
			}
			got, err := r.Wait(t.Context())
			if err != nil || got.Words != uint32(n) || !bytes.Equal(buf, data) {
				t.Fatalf("%d words: %+v, %v, intact %v", n, got, err, bytes.Equal(buf, data))
			}
		}
	})
}

func TestOrderOfManyPosts(t *testing.T) {
	// A hundred messages in each direction are posted at once, over a bad network: each arrives once, in order.
	// Messages have one datagram, and duplicates are not delayed past a handshake; otherwise the protocol could not
	// detect the damage.
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, handshake.SoftwarePeer(), nil)
		defer c.close()
		rng := rand.New(rand.NewPCG(1, 2))
		// A sender retransmits three times, so at most one of a few packets in a row is lost.
		var since [3][3]int
		c.net.SetHook(func(from, to int, _ []byte) []time.Duration {
			since[from][to]++
			switch p := rng.IntN(100); {
			case p < 6 && since[from][to] > 6:
				since[from][to] = 0
				return nil
			case p < 10:
				return []time.Duration{10 * time.Microsecond, 10 * time.Microsecond}
			}
			return []time.Duration{10 * time.Microsecond}
		})
		const count = 100
		type posted struct {
			*mpe.Request
			buf, want []byte
			what      string
		}
		var all []posted
		for a := range 3 {
			for b := range 3 {
				if a == b {
					continue
				}
				for i := range count {
					data, buf := words(1+i, uint32(a*3+b)), make([]byte, 4*count)
					s, err := c.engines[a].Isend(b, data, mpe.Options{})
					if err != nil {
						t.Fatal(err)
					}
					r, err := c.engines[b].Irecv(a, buf, mpe.Options{})
					if err != nil {
						t.Fatal(err)
					}
					what := fmt.Sprintf("message %d from %d to %d", i, a, b)
					all = append(all, posted{s, nil, nil, what}, posted{r, buf, data, what})
				}
			}
		}
		for _, p := range all {
			st, err := p.Wait(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", p.what, err)
			}
			if p.want != nil && !bytes.Equal(p.buf[:4*st.Words], p.want) {
				t.Fatalf("%s: %d words arrived, not the %d sent", p.what, st.Words, len(p.want)/4)
			}
		}
	})
}

func TestArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.FPGAPeer(1), func(h *handshake.Config) { h.MaxWords = 10 })
		defer c.close()
		e := c.engines[0]
		for _, tc := range []struct {
			rank, bytes int
			opts        mpe.Options
			want        error
		}{
			{-1, 4, mpe.Options{}, mpe.ErrRank},
			{2, 4, mpe.Options{}, mpe.ErrRank},
			{1, 5, mpe.Options{}, mpe.ErrLength},
			{mpe.AnySource, 4, mpe.Options{}, mpe.ErrRank},
			{1, 4, mpe.Options{Tag: 1 << 31}, mpe.ErrTag},
			{1, 4, mpe.Options{Comm: 2}, mpe.ErrComm},
			{1, 4, mpe.Options{Tag: -1}, mpe.ErrTag},
			{1, 0, mpe.Options{}, handshake.ErrEmpty},
			{1, 44, mpe.Options{}, handshake.ErrTooLong},
		} {
			if _, err := e.Send(t.Context(), tc.rank, make([]byte, tc.bytes), tc.opts); !errors.Is(err, tc.want) {
				t.Errorf("%+v: got %v", tc, err)
			}
		}
		if _, err := e.Irecv(mpe.AnySource, nil, mpe.Options{Tag: 7}); !errors.Is(err, mpe.ErrWildcard) {
			t.Errorf("any source, tag 7, with a peer that carries no tag: %v", err)
		}
	})
}

func TestTruncation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		defer c.close()
		buf := bytes.Repeat([]byte{0xee}, 4*400)
		r, _ := c.engines[1].Irecv(0, buf[:4*350], mpe.Options{})
		if _, err := c.engines[0].Send(t.Context(), 1, words(1000, 1), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		st, err := r.Wait(t.Context())
		if !errors.Is(err, handshake.ErrTruncated) || st.Words != 1000 {
			t.Fatalf("%+v, %v", st, err)
		}
		if !bytes.Equal(buf[:4*350], words(1000, 1)[:4*350]) ||
			!bytes.Equal(buf[4*350:], bytes.Repeat([]byte{0xee}, 200)) {
			t.Fatal("the buffer holds something else, or more was written")
		}
	})
}

func TestContextEndsAWaitAndSaysWhatFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, handshake.SoftwarePeer(), nil)
		defer c.close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.engines[0].Send(ctx, 2, words(1, 1), mpe.Options{})
		var we *mpe.WaitError
		if !errors.As(err, &we) || !errors.Is(err, context.DeadlineExceeded) || we.State != handshake.WaitClear ||
			we.Remote != 2 {
			t.Fatalf("got %v", err)
		}
		const want = "rank 0 has waited 5s for CLEAR_TO_SEND from rank 2: context deadline exceeded"
		if err.Error() != want {
			t.Errorf("says %q, want %q", err, want)
		}
		fpgas := newCluster(t, 3, handshake.FPGAPeer(2), nil)
		defer fpgas.close()
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := fpgas.engines[0].Send(ctx, 2, words(1, 1), mpe.Options{}); err == nil || err.Error() != want+
			"; rank 2 keeps the SEND_REQUEST if it has received it: when it receives from rank 0, it waits for DATA "+
			"until rank 0 sends another message of this datatype: send one, or restart its program or role" {
			t.Errorf("says %v", err)
		}
		// A queued operation reports the operations ahead of it.
		first, _ := c.engines[0].Irecv(1, make([]byte, 4), mpe.Options{})
		second, _ := c.engines[0].Irecv(1, make([]byte, 4), mpe.Options{})
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = second.Wait(ctx); err == nil || err.Error() != "queued behind 1 other for 1s, and rank 0 has "+
			"waited 1s for SEND_REQUEST from rank 1: context deadline exceeded" {
			t.Errorf("says %v", err)
		}
		// A cancelled operation leaves no trace.
		c.engines[1].Isend(0, words(1, 7), mpe.Options{})
		if st, err := first.Wait(t.Context()); err != nil || st.Words != 1 {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

func TestDetachedReceiveKeepsTheMessage(t *testing.T) {
	// The sender was cleared, so its message arrives. It goes to the next receive, and the buffer of the
	// receive that timed out is not written to again.
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		defer c.close()
		c.net.SetHook(func(from, _ int, b []byte) []time.Duration {
			if h, d := protocol.CloudFPGA.Parse(b); from == 0 && d.OK() && h.Type == protocol.Data {
				return []time.Duration{20 * time.Millisecond}
			}
			return []time.Duration{time.Millisecond}
		})
		first := make([]byte, 400)
		r, _ := c.engines[1].Irecv(0, first, mpe.Options{})
		s, _ := c.engines[0].Isend(1, words(100, 1), mpe.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, err := r.Wait(ctx)
		var we *mpe.WaitError
		if !errors.As(err, &we) || !we.InTransfer || we.State != handshake.WaitData {
			t.Fatalf("got %v", err)
		}
		if _, err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, make([]byte, 400)) {
			t.Error("the buffer was written to after it was returned")
		}
		buf := make([]byte, 200)
		st, err := c.engines[1].Recv(t.Context(), 0, buf, mpe.Options{})
		if !errors.Is(err, handshake.ErrTruncated) || st.Words != 100 || !bytes.Equal(buf, words(100, 1)[:200]) {
			t.Fatalf("the next receive got %+v, %v", st, err)
		}
		// The next receive gets the next message.
		c.engines[0].Isend(1, words(10, 2), mpe.Options{})
		if st, err := c.engines[1].Recv(t.Context(), 0, buf, mpe.Options{}); err != nil || st.Words != 10 ||
			!bytes.Equal(buf[:40], words(10, 2)) {
			t.Fatalf("the one after it got %+v, %v", st, err)
		}
	})
}

func TestDetachedSendGoesOnWithACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		defer c.close()
		lose := true
		c.net.SetHook(func(_, _ int, b []byte) []time.Duration {
			if h, d := protocol.CloudFPGA.Parse(b); d.OK() && h.Type == protocol.Data && lose {
				lose = false
				return nil
			}
			return []time.Duration{0}
		})
		data, buf := words(10, 1), make([]byte, 40)
		r, _ := c.engines[1].Irecv(0, buf, mpe.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := c.engines[0].Send(ctx, 1, data, mpe.Options{})
		var we *mpe.WaitError
		if !errors.As(err, &we) || !we.InTransfer {
			t.Fatalf("got %v", err)
		}
		clear(data) // returned to the caller
		if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(buf, words(10, 1)) {
			t.Fatalf("%v, intact %v", err, bytes.Equal(buf, words(10, 1)))
		}
	})
}

func TestUnknownAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(2)
		tr := net.Transport(0)
		hs := handshake.Config{Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.PeerRules{}),
			MaxWords: 10}
		e, err := mpe.New(mpe.Config{Rank: 0, Peers: []mpe.Peer{{}, {Handshake: hs, Transport: tr}}})
		if err != nil {
			t.Fatal(err)
		}
		e.Irecv(1, make([]byte, 4), mpe.Options{})
		req := protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: 1, Call: protocol.SendInt, Type: protocol.SendRequest})
		far := protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: 0xFFFFFFFF, Call: protocol.SendInt, Type: protocol.SendRequest})
		net.Inject(mpe.UnknownPeer, 0, req)
		net.Inject(mpe.UnknownPeer, 0, far)
		net.Inject(mpe.UnknownPeer, 0, []byte("not a packet"))
		synctest.Wait()
		s := e.Snapshot()
		answered := s.Peers[0].PacketsOut[protocol.ClearToSend] > 0
		if answered || s.Dropped[state.DropUnknownAddress] != 3 {
			t.Errorf("answered %v, dropped %v", answered, s.Dropped)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e.Close(ctx)
	})
}

func TestSnapshotSaysWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, handshake.FPGAPeer(1), nil)
		defer c.close()
		c.engines[0].Isend(1, words(5, 1), mpe.Options{})
		c.engines[0].Isend(1, words(5, 1), mpe.Options{})
		c.engines[0].Irecv(2, make([]byte, 4), mpe.Options{})
		time.Sleep(4 * time.Second)
		s := c.engines[0].Snapshot()
		one, two := s.Peers[0], s.Peers[1]
		if one.Sending == nil || one.Sending.WaitsFor != protocol.ClearToSend || one.Sending.Seconds != 4 ||
			one.QueuedSends != 1 || one.Sending.Retransmissions != 3 || one.Retransmissions != 3 {
			t.Errorf("%+v", one)
		}
		if two.Receiving == nil || two.Receiving.Text != "rank 0 waits for SEND_REQUEST from rank 2" {
			t.Errorf("%+v", two.Receiving)
		}
		if p := c.engines[1].Snapshot().Peers[0]; p.Deferred == nil || p.Deferred.Call != "SEND_INT" {
			t.Errorf("the peer's deferred request: %+v", p)
		}
		if ws := c.engines[0].Waits(3 * time.Second); len(ws) != 2 ||
			ws[0].Text() != "rank 0 waits for CLEAR_TO_SEND from rank 1" || ws[0].Elapsed != 4*time.Second {
			t.Errorf("waits: %+v", ws)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		e := c.engines[0]
		var reqs []*mpe.Request
		for range 3 {
			s, _ := e.Isend(1, words(1, 1), mpe.Options{})
			r, _ := e.Irecv(1, make([]byte, 4), mpe.Options{})
			reqs = append(reqs, s, r)
		}
		c.close()
		for i, r := range reqs {
			if _, err := r.Wait(t.Context()); !errors.Is(err, mpe.ErrClosed) {
				t.Errorf("request %d ended with %v", i, err)
			}
		}
		if _, err := e.Isend(1, words(1, 1), mpe.Options{}); !errors.Is(err, mpe.ErrClosed) {
			t.Errorf("a post after Close: %v", err)
		}
	})
}

func TestCloseDrainsPendingMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		c.net.SetHook(func(int, int, []byte) []time.Duration { return []time.Duration{10 * time.Millisecond} })
		buf := make([]byte, 4)
		r, _ := c.engines[1].Irecv(0, buf, mpe.Options{})
		s, _ := c.engines[0].Isend(1, words(1, 9), mpe.Options{})
		time.Sleep(25 * time.Millisecond) // DATA is in transit
		c.close()
		if _, err := s.Wait(t.Context()); err != nil {
			t.Errorf("send: %v", err)
		}
		if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(buf, words(1, 9)) {
			t.Errorf("receive: %v", err)
		}
	})
}

func TestAPeerIsHeardOverItsOwnTransportOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, other := memnet.New(3), memnet.New(3)
		hs := handshake.Config{Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.PeerRules{}),
			MaxWords: 10}
		e, err := mpe.New(mpe.Config{Rank: 0, Peers: []mpe.Peer{
			{}, {Handshake: hs, Transport: own.Transport(0)}, {Handshake: hs, Transport: other.Transport(0)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		e.Irecv(1, make([]byte, 4), mpe.Options{})
		other.Inject(1, 0, protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: 1, Call: protocol.SendInt, Type: protocol.SendRequest}))
		synctest.Wait()
		if p := e.Snapshot().Peers[0]; p.PacketsOut[protocol.ClearToSend] != 0 ||
			p.Dropped[state.DropUnexpectedPayload] != 1 {
			t.Errorf("answered a request that came over another transport: %+v", p)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e.Close(ctx)
	})
}
