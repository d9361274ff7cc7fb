package attach

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestRoundTrips(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(3, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, wire.AnyRank)
	if a.Rank() != 0 || b.Rank() != 1 || a.Size() != 3 {
		t.Fatalf("ranks %d and %d of %d", a.Rank(), b.Rank(), a.Size())
	}
	for i, n := range []int{0, 1, 4, 1000, wire.CopyLen, wire.CopyLen + 1, wire.BatchLen, wire.ChunkLen - 1,
		wire.ChunkLen, wire.ChunkLen + 1, 2 * wire.ChunkLen, 5*wire.ChunkLen + 13} {
		for _, kind := range []mpe.OpKind{mpe.OpSend, mpe.OpSendSync} {
			data, buf := attachtest.Pattern(uint64(i), n), make([]byte, n+3)
			r := attachtest.StartOp(t, b,
				mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: mpe.AnyTag, Comm: 9, Buf: buf,
					AnyDatatype: true})
			s := attachtest.StartOp(t, a,
				mpe.Operation{Kind: kind, Peer: 1, Tag: i, Comm: 9, Buf: data, Datatype: protocol.Float})
			st := attachtest.Wait(t, r)
			attachtest.CheckEqual(t, fmt.Sprintf("%d bytes", n), buf[:st.Bytes], data)
			want := mpe.Status{Peer: 0, Bytes: int64(n), Words: uint32(n+3) / 4, Comm: 9, Datatype: protocol.Float,
				Tag:    i,
				Phases: handshake.Phases{Start: 1, Request: 2, Clear: 3, Data: 4, Ack: 5, Retransmissions: 6}}
			if st != want {
				t.Errorf("status %+v, want %+v", st, want)
			}
			st = attachtest.Wait(t, s)
			if want := (mpe.Status{Peer: 1, Send: true, Bytes: int64(n), Comm: 9, Datatype: protocol.Float,
				Tag: i}); st != want {
				t.Errorf("status %+v, want %+v", st, want)
			}
			if again, ended, err := s.Test(); !ended || err != nil || again != st {
				t.Errorf("%+v, %v, %v", again, ended, err)
			}
		}
	}
}

func TestWelcome(t *testing.T) {
	limits := wire.Limits{Operations: 7, Bytes: 1 << 40}
	h := serve(t, newWorld(300, 4), Options{Limits: limits, Memory: 1 << 42})
	c := h.dial(t, 4)
	if c.Limits() != limits || c.Size() != 300 {
		t.Errorf("%+v, %d ranks", c.Limits(), c.Size())
	}
	for rank := range 300 {
		got, err := c.Peer(rank)
		want, _ := h.w.ranks[4].Peer(rank)
		if err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	for _, rank := range []int{-1, 300} {
		if _, err := c.Peer(rank); !errors.Is(err, mpe.ErrRank) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func TestProbe(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	m := mpe.Match{Source: 0, Tag: 5, Comm: 0}
	if _, found, err := b.Probe(attachtest.TestContext(t), m, false); found || err != nil {
		t.Errorf("%v, %v, want nothing", found, err)
	}
	attachtest.Wait(t, attachtest.Send(t, a, 1, 5, []byte("abcde")))
	for _, waits := range []bool{true, false} {
		st, found, err := b.Probe(attachtest.TestContext(t), m, waits)
		if err != nil || !found || st.Bytes != 5 || st.Tag != 5 || st.Peer != 0 {
			t.Errorf("%+v, %v, %v", st, found, err)
		}
	}
	// A probe that waits does not delay other operations, and it finds a message that arrives later.
	probed := make(chan error, 1)
	go func() {
		_, found, err := b.Probe(attachtest.TestContext(t), mpe.Match{Source: mpe.AnySource, Tag: 6}, true)
		if err == nil && !found {
			err = errors.New("found no message")
		}
		probed <- err
	}()
	attachtest.WaitUntil(t, "the probe is in progress",
		func() bool { return h.server.AttachedPrograms()[1].Operations == 1 })
	attachtest.Wait(t, attachtest.Recv(t, b, 0, 5, make([]byte, 5)))
	attachtest.Wait(t, attachtest.Send(t, a, 1, 6, nil))
	if err := <-probed; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	errEnough := errors.New("enough")
	cancel(errEnough)
	if _, found, err := b.Probe(ctx, mpe.Match{Source: 0, Tag: 99}, true); found || !errors.Is(err, errEnough) {
		t.Errorf("%v, %v", found, err)
	}
}

// TestOversubscribed checks that programs can exchange messages whether or not their host is oversubscribed.
func TestOversubscribed(t *testing.T) {
	for _, oversubscribed := range []bool{false, true} {
		h := serve(t, newWorld(2, 0, 1), Options{Oversubscribed: oversubscribed})
		a, b := h.dial(t, 0), h.dial(t, 1)
		ended := make(chan error, 1)
		go func() {
			buf := make([]byte, 100)
			for range 100 {
				for _, op := range []mpe.Operation{{Kind: mpe.OpRecv, Peer: 0, Buf: buf},
					{Kind: mpe.OpSend, Peer: 0, Buf: buf}} {
					o, err := b.Start(op)
					if err == nil {
						_, err = o.Await(context.Background())
					}
					if err != nil {
						ended <- err
						return
					}
				}
			}
			ended <- nil
		}()
		back := make([]byte, 100)
		for i := range 100 {
			data := attachtest.Pattern(uint64(i), len(back))
			r := attachtest.Recv(t, a, 1, 0, back)
			attachtest.Wait(t, attachtest.Send(t, a, 1, 0, data))
			attachtest.Wait(t, r)
			attachtest.CheckEqual(t, "the echo", back, data)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestPipelining(t *testing.T) {
	const n = 10_000
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	var ops, recvs [n]mpe.Op
	bufs := make([][]byte, n)
	// Receive in a different order than the messages are sent. The answers come in a different order, too.
	for i := n - 1; i >= 0; i-- {
		bufs[i] = make([]byte, 8)
		recvs[i] = attachtest.Recv(t, b, 0, i%1000, bufs[i])
	}
	for i := range ops {
		ops[i] = attachtest.Send(t, a, 1, i%1000, fmt.Appendf(nil, "%08d", i))
	}
	for i := range ops {
		attachtest.Wait(t, ops[i])
		attachtest.Wait(t, recvs[i])
	}
	// Receives that have the same tag match in the order in which they were posted.
	for i := range bufs {
		posted := n - 1000 - i/1000*1000 + i%1000
		if want := fmt.Sprintf("%08d", posted); string(bufs[i]) != want {
			t.Fatalf("receive %d got %s, want %s", i, bufs[i], want)
		}
	}
}

func TestManyGoroutines(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	var tasks sync.WaitGroup
	for tag := range 16 {
		sizes := []int{4, 100, wire.CopyLen + 5, 2*wire.ChunkLen + 1}
		tasks.Go(func() {
			for i := range 50 {
				attachtest.Wait(t, attachtest.Send(t, a, 1, tag, attachtest.Pattern(uint64(tag+i), sizes[(tag+i)%4])))
			}
		})
		tasks.Go(func() {
			for i := range 50 {
				buf := make([]byte, sizes[(tag+i)%4])
				attachtest.Wait(t, attachtest.Recv(t, b, 0, tag, buf))
				attachtest.CheckEqual(t, "one of many", buf, attachtest.Pattern(uint64(tag+i), len(buf)))
			}
		})
	}
	tasks.Wait()
}

// TestOrder checks that a small send does not overtake a large one to the same peer.
func TestOrder(t *testing.T) {
	h := serve(t, newWorld(3, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	large := attachtest.Pattern(1, 20*wire.ChunkLen)
	ops := []mpe.Op{attachtest.Send(t, a, 1, 0, large), attachtest.Send(t, a, 1, 0, []byte("small"))}
	first, second := make([]byte, len(large)), make([]byte, 5)
	recvs := []mpe.Op{attachtest.Recv(t, b, 0, 0, first), attachtest.Recv(t, b, 0, 0, second)}
	for i := range ops {
		attachtest.Wait(t, ops[i])
		attachtest.Wait(t, recvs[i])
	}
	attachtest.CheckEqual(t, "first", first, large)
	attachtest.CheckEqual(t, "second", second, []byte("small"))
}

func TestNotify(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	op := attachtest.Recv(t, b, 0, 0, make([]byte, 1))
	if _, ended, _ := op.Test(); ended {
		t.Error("ended before it could")
	}
	revoked, refusal := make(chan struct{}, 1), make(chan struct{}, 1)
	op.Notify(revoked)
	op.Notify(nil)
	op.Notify(refusal)
	attachtest.Send(t, a, 1, 0, []byte("x"))
	<-refusal
	if _, ended, err := op.Test(); !ended || err != nil {
		t.Errorf("%v, %v", ended, err)
	}
	op.Notify(refusal) // notifies at once
	<-refusal
	op.Notify(nil)
	if len(revoked) > 0 {
		t.Error("a revoked channel was notified")
	}
}

func TestCancel(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	for _, op := range []mpe.Op{
		attachtest.Recv(t, b, 0, 7, make([]byte, 4)),
		attachtest.StartOp(t, a, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Tag: 8,
			Buf: attachtest.Pattern(0, 2*wire.ChunkLen)}),
	} {
		op.Cancel()
		op.Cancel()
		if _, err := op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrCancelled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	op := attachtest.Send(t, a, 1, 7, []byte("late"))
	attachtest.Wait(t, op)
	op.Cancel()
	attachtest.Wait(t, op)
}

func TestAbort(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	b := h.dial(t, 1)
	errTooLate := errors.New("the caller is impatient")
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(errTooLate)
	_, err := attachtest.Recv(t, b, 0, 7, make([]byte, 4)).Await(ended)
	e, ok := errors.AsType[*mpe.WaitError](err)
	if !ok || e.Local != 1 || e.Remote != 0 || e.State != handshake.WaitRequest || e.Queued != 3 || e.Network == nil {
		t.Errorf("%v: %+v", err, e)
	}
	if want := "rank 1 waits for rank 0: the caller is impatient"; err.Error() != want || !errors.Is(err, errTooLate) {
		t.Errorf("%q, want %q", err, want)
	}
	expired, stop := context.WithTimeout(context.Background(), 0)
	defer stop()
	if _, err := attachtest.Recv(t, b, 0, 7, make([]byte, 4)).Await(expired); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	// It must not match later messages.
	buf := make([]byte, 4)
	op := attachtest.Recv(t, b, 0, 7, buf)
	attachtest.Wait(t, attachtest.Send(t, h.dial(t, 0), 1, 7, []byte("next")))
	attachtest.Wait(t, op)
	attachtest.CheckEqual(t, "the next receive", buf, []byte("next"))
}
