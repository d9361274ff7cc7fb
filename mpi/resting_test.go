package mpi_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// restingDevices returns two engines that accept many messages from each other before receives match.
func restingDevices(t *testing.T) []mpe.Device {
	t.Helper()
	return engines(func(a, b int, p *mpe.Peer) {
		extendedPeer(a, b, p)
		p.Extended.Job = true
		p.Extended.CreditPool = extended.NewCreditPool(1 << 20)
	})(t, 2)
}

// restingPair calls restingSends with new devices.
func restingPair(t *testing.T, n int) (ranks []*mpi.Comm, requests []mpi.Request) {
	t.Helper()
	return restingSends(t, restingDevices(t), n)
}

// restingSends returns two ranks. The first one has started n synchronous sends with tag 7, which contain one word
// each, 0, 1 and so on. The second one has received all announcements.
func restingSends(t *testing.T, devices []mpe.Device, n int) (ranks []*mpi.Comm, requests []mpi.Request) {
	t.Helper()
	for _, dev := range devices {
		c, err := mpi.New(dev)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, c)
	}
	data := make([]int32, n)
	for i := range data {
		data[i] = int32(i)
		r, err := mpi.Issend(ranks[0], data[i:i+1], 1, 7)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
	}
	after := make([]int32, 1)
	r, err := mpi.Isend(ranks[0], []int32{-1}, 1, 8) // sent eagerly
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mpi.Recv(t.Context(), ranks[1], after, 0, 8); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ranks, requests
}

// receive receives the next messages with tag 7 at the second rank.
func receive(t *testing.T, c *mpi.Comm, want ...int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	for _, i := range want {
		got := make([]int32, 1)
		if _, err := mpi.Recv(ctx, c, got, 0, 7); err != nil || got[0] != int32(i) {
			t.Errorf("message %d: %d, %v", i, got[0], err)
			return
		}
	}
}

func upTo(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// TestRestingSends makes every call that takes a request, with many sends that are waiting.
func TestRestingSends(t *testing.T) {
	const n = 300
	ranks, rs := restingPair(t, n)
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	expired, stop := context.WithCancel(ctx)
	stop()
	stale := func(r mpi.Request) {
		t.Helper()
		if _, done, err := r.Test(); !done || err != nil || r.Active() {
			t.Fatalf("a stale handle: done %v, %v, active %v", done, err, r.Active())
		}
		if mpi.ClassOf(r.Cancel()) != mpi.ErrRequest || mpi.ClassOf(r.Free()) != mpi.ErrRequest ||
			mpi.ClassOf(r.Start()) != mpi.ErrRequest {
			t.Error("a stale handle is cancelled, freed or started")
		}
	}
	// All are pending.
	for _, r := range rs {
		_, done, err := r.Test()
		_, peeked, peekErr := r.Peek()
		if done || peeked || err != nil || peekErr != nil || !r.Active() {
			t.Fatalf("the request is done: %v, %v, %v, %v", done, peeked, err, peekErr)
		}
	}
	if i, _, done, err := mpi.Testany(rs); done || i != mpi.Undefined || err != nil {
		t.Errorf("Testany: %d, %v, %v", i, done, err)
	}
	if done, err := mpi.Testall(rs, nil); done || err != nil {
		t.Errorf("Testall: %v, %v", done, err)
	}
	// The last ones are cancelled, with Cancel and Wait in any order, or by a context.
	for _, i := range []int{299, 297} {
		if err := rs[i].Cancel(); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{297, 299} {
		if st, err := rs[i].Wait(ctx); err != nil || !st.Cancelled {
			t.Errorf("request %d: %+v, %v", i, st, err)
		}
		stale(rs[i])
	}
	var wait *mpe.WaitError
	_, err := rs[298].Wait(expired)
	if of, ok := errors.AsType[*mpi.Error](err); !ok || of.Op != "Issend" || of.Peer != 1 || of.Tag != 7 || !of.Send ||
		!errors.As(err, &wait) {
		t.Errorf("a wait whose context is done: %v", err)
	}
	stale(rs[298])
	// Freed sends continue, and copies of their handles are stale.
	for _, i := range []int{1, 150} { // the second one is resting
		if err := rs[i].Free(); err != nil {
			t.Fatal(err)
		}
		stale(rs[i])
	}
	receive(t, ranks[1], 0, 1)
	if _, err := rs[0].Wait(ctx); err != nil {
		t.Fatal(err)
	}
	// Peek keeps an outcome, and Test removes it.
	receive(t, ranks[1], 2)
	for done := false; !done; _, done, _ = rs[2].Peek() {
	}
	if _, done, err := rs[2].Peek(); !done || err != nil || !rs[2].Active() {
		t.Errorf("Peek: %v, %v", done, err)
	}
	if _, done, err := rs[2].Test(); !done || err != nil {
		t.Errorf("Test: %v, %v", done, err)
	}
	stale(rs[2])
	// Any of several.
	var received sync.WaitGroup
	received.Go(func() { receive(t, ranks[1], 3, 4, 5, 6) })
	taken := map[int]bool{}
	for len(taken) < 2 {
		i, _, err := mpi.Waitany(ctx, rs[3:7])
		if err != nil || i < 0 || taken[i] {
			t.Fatalf("Waitany: %d, %v", i, err)
		}
		taken[i] = true
	}
	for len(taken) < 4 {
		some, err := mpi.Waitsome(ctx, rs[3:7], nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range some {
			taken[i] = true
		}
	}
	received.Wait()
	// All, while another goroutine frees and tests them.
	received.Go(func() { receive(t, ranks[1], upTo(7, 200)...) })
	if err := mpi.Waitall(ctx, rs[:200], nil); err != nil {
		t.Fatal(err)
	}
	received.Wait()
	for _, r := range rs[:200] {
		stale(r)
	}
	// Records are reused with other numbers.
	more := make([]mpi.Request, 100)
	for i := range more {
		if more[i], err = mpi.Issend(ranks[0], []int32{int32(i)}, 1, 7); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rs[:200] {
		stale(r)
	}
	receive(t, ranks[1], upTo(200, 297)...)
	receive(t, ranks[1], upTo(0, 50)...)
	if err := mpi.Waitall(ctx, append(rs[200:297:297], more[:50]...), nil); err != nil {
		t.Fatal(err)
	}
	// Sends that are waiting when the peer is finalized fail, and their errors name the call.
	if err := ranks[1].Finalize(ctx); err != nil {
		t.Fatal(err)
	}
	soon, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	for _, r := range more[50:] {
		_, err := r.Wait(soon)
		if of, ok := errors.AsType[*mpi.Error](err); !ok || of.Op != "Issend" ||
			!strings.Contains(err.Error(), "Finalize") && !strings.Contains(err.Error(), "closed") {
			t.Fatalf("a send to a finalized rank: %v", err)
		}
		stale(r)
	}
	if err := ranks[0].Finalize(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestRestingSendsOfAFinalizedRank checks that sends fail when their own rank ends, and are cancelled at the peer.
func TestRestingSendsOfAFinalizedRank(t *testing.T) {
	ranks, rs := restingPair(t, 200)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if err := ranks[0].Finalize(ctx); err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if _, err := r.Wait(t.Context()); !errors.Is(err, mpe.ErrClosed) {
			t.Fatalf("a send of a finalized rank: %v", err)
		}
	}
	if _, found, _ := mpi.Iprobe(ranks[1], 0, 7); found {
		t.Error("its peer still has a message")
	}
}

// TestMemoryOfRestingSends checks that a waiting send uses no request: only its handle, its record, and the record of
// its message at the receiver. The fixed memory of both ranks is a quarter of the limit.
func TestMemoryOfRestingSends(t *testing.T) {
	const n = 30_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	ranks, rs := restingPair(t, n)
	each := float64(heap()-before) / n
	t.Logf("%.0f bytes of both ranks for each message", each)
	if each > 350 {
		t.Errorf("each message takes %.0f bytes of both ranks", each)
	}
	go receive(t, ranks[1], upTo(0, n)...)
	if err := mpi.Waitall(t.Context(), rs, nil); err != nil {
		t.Fatal(err)
	}
}

// TestOldestRestingSend checks that the counters show the age of the oldest send, even if it is resting and a younger
// one is not.
func TestOldestRestingSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		devices := restingDevices(t)
		ranks, requests := restingSends(t, devices, n)
		time.Sleep(time.Minute)
		receive(t, ranks[1], upTo(0, 100)...) // the first of these are not resting
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = mpi.Ssend(ctx, ranks[0], []int32{0}, 1, 9) }()
		time.Sleep(time.Second)
		devices[0].(*mpe.Engine).Counters(func(*state.RankCounters) {}, func(c *state.PeerCounters) {
			if c.Rank == 1 && c.OldestSend.Elapsed < time.Minute {
				t.Errorf("the oldest send has waited for %v", c.OldestSend.Elapsed)
			}
		})
		stop()
		receive(t, ranks[1], upTo(100, n)...)
		if err := mpi.Waitall(t.Context(), requests, nil); err != nil {
			t.Error(err)
		}
		for _, c := range ranks {
			if err := c.Finalize(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFlush checks that Flush returns when the messages of its buffer have been received, or when its context ends.
func TestFlush(t *testing.T) {
	devices := restingDevices(t)
	var ranks []*mpi.Comm
	for _, dev := range devices {
		c, err := mpi.New(dev)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, c)
	}
	sent := make([]int64, 1<<15) // too long for an eager send
	b := ranks[0].NewSendBuffer()
	ranks[0].SetSendBuffers(b)
	if err := errors.Join(b.Attach(8*len(sent)), mpi.Bsend(ranks[0], sent, 1, 7)); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Flush(ended); mpi.ClassOf(err) != mpi.ErrPending || !errors.Is(err, context.Canceled) {
		t.Errorf("before the message is received: %v", err)
	}
	_, received := mpi.Recv(t.Context(), ranks[1], make([]int64, len(sent)), 0, 7)
	if err := errors.Join(received, b.Flush(t.Context())); err != nil {
		t.Error(err)
	}
}
