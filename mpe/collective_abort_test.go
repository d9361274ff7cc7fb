package mpe_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Constants of the specification of aborts of collective calls.
const (
	statusComm = 1<<32 - 1
	abortLen   = 20
)

// aborts collects the aborts that ranks send to each other, without duplicates.
type aborts struct {
	mu   sync.Mutex
	list map[[3]uint32][]byte // by source, destination and message
	// lose selects packets to lose.
	lose func(from, to int) bool
}

func listen(c *cluster) *aborts {
	x := &aborts{list: map[[3]uint32][]byte{}}
	c.net.SetHook(func(from, to int, b []byte) []time.Duration {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.lose != nil && x.lose(from, to) {
			return nil
		}
		h, payload, d := protocol.ParseExtended(b)
		if d.OK() && h.Type == protocol.Data && h.Comm == statusComm && len(payload) == abortLen {
			x.list[[3]uint32{uint32(from), uint32(to), h.Message}] = bytes.Clone(payload)
		}
		return []time.Duration{0}
	})
	return x
}

// all returns the aborts sent so far, by sender, receiver and message.
func (x *aborts) all() map[[3]uint32][]byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.list)
}

func (x *aborts) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.list)
}

func (x *aborts) losing(f func(from, to int) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lose = f
}

// deliverAbort sends an abort from one engine to another; the abort may originate from a third one.
func deliverAbort(t *testing.T, e *mpe.Engine, to int, text []byte) {
	t.Helper()
	finish(t, start(t, e, mpe.Operation{Kind: mpe.OpSendSync, Peer: to, Comm: statusComm, Buf: text}))
}

// cause checks the reason why a call failed.
func cause(t *testing.T, err error, rank int, want collective.FailureCause) {
	t.Helper()
	var failed *collective.CallFailedError
	if !errors.As(err, &failed) || failed.Rank != rank || failed.Cause != want {
		t.Errorf("%v; it should be because of rank %d: %v", err, rank, want)
	}
}

// TestOneAbortsAll checks that an abort takes one message per other rank, not one per pair of ranks.
func TestOneAbortsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks = 9
		c := newExtended(t, ranks, nil)
		defer c.close()
		devices := c.communicator(1)
		all(t, barrier(ranks), devices, 1)
		x := listen(c)
		ops := map[int]mpe.Op{}
		for r := 1; r < ranks; r++ {
			ops[r] = post(t, barrier(ranks), devices[r], 2)
		}
		abortCall(t, ops[3], time.Second)
		for r := 1; r < ranks; r++ {
			if r != 3 {
				cause(t, outcome(t, ops[r]), 3, collective.CauseTimeout)
			}
		}
		time.Sleep(time.Minute)
		if len(x.all()) != ranks-1 {
			t.Errorf("%d messages", len(x.all()))
		}
		for r, e := range c.engines {
			n := uint64(1)
			if r == 0 {
				n = 0 // it has not made the call
			}
			for _, s := range e.Snapshot().Collectives {
				if s.Collective == "Barrier" && s.Failures != n {
					t.Errorf("rank %d counts %d failures", r, s.Failures)
				}
			}
		}
		cause(t, outcome(t, post(t, barrier(ranks), devices[0], 2)), 3, collective.CauseTimeout)
		if n := c.engines[0].Snapshot().Collectives; len(n) != 1 || n[0].Calls != 2 || n[0].Failures != 1 {
			t.Errorf("rank 0 counts %+v", n)
		}
		all(t, barrier(ranks), devices, 3) // the next call in the same communicator works, too
	})
}

// TestFailureBeforeAgreement checks that members that wait for the agreement get an abort at once, and that members
// that make the call later get the abort after the agreement.
func TestFailureBeforeAgreement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 5, nil)
		defer c.close()
		devices := c.communicator(1)
		a, b, d := post(t, barrier(5), devices[0], 1), post(t, barrier(5), devices[1], 1),
			post(t, barrier(5), devices[3], 1)
		abortCall(t, b, time.Second)
		cause(t, outcome(t, a), 1, collective.CauseTimeout)
		cause(t, outcome(t, d), 1, collective.CauseTimeout)
		synctest.Wait()
		x, y := post(t, barrier(5), devices[2], 1), post(t, barrier(5), devices[4], 1)
		cause(t, outcome(t, x), 1, collective.CauseTimeout)
		cause(t, outcome(t, y), 1, collective.CauseTimeout)
		all(t, barrier(5), devices, 2)
	})
}

// TestAbortWhileAgreeing checks the case that a rank gets an abort before its own agreement is complete, but after
// the agreement of other ranks is: it determines later which call is aborted.
func TestAbortWhileAgreeing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 4, nil)
		defer c.close()
		devices := c.communicator(1)
		x := listen(c)
		x.losing(func(from, to int) bool { return from == 3 && to == 1 })
		var ops []mpe.Op
		for _, d := range devices {
			ops = append(ops, post(t, barrier(4), d, 1))
		}
		abortCall(t, ops[0], 100*time.Millisecond)
		synctest.Wait()
		reached := false
		for at, text := range x.all() {
			reached = reached || at[1] == 1 && binary.LittleEndian.Uint64(text) != 0
		}
		if s := c.engines[1].Snapshot().Calls; len(s) != 1 || s[0].Algorithm != "" || !reached {
			t.Errorf("rank 1 has agreed, or got no abort: %+v, %x", s, x.all())
		}
		x.losing(nil)
		for _, o := range ops[1:] {
			cause(t, outcome(t, o), 0, collective.CauseTimeout)
		}
		all(t, barrier(4), devices, 2)
	})
}

// TestAbortOfFutureCalls checks that aborts of future calls are stored, up to a limit, even when numbers wrap around.
func TestAbortOfFutureCalls(t *testing.T) {
	const ahead = 70
	for _, last := range []int{1, collective.Tags - 1, collective.Tags - 30} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, 3, nil)
			defer c.close()
			devices := c.communicator(1)
			all(t, barrier(3), devices, last)
			number := func(i int) int { return (last+i-1)%collective.Tags + 1 }
			var ops []mpe.Op
			for i := 1; i <= ahead; i++ {
				ops = append(ops, post(t, barrier(3), devices[1], number(i)))
			}
			for i := ahead - 1; i >= 0; i-- { // later ones first
				abortCall(t, ops[i], time.Second)
			}
			synctest.Wait()
			for i := 1; i <= 64; i++ {
				o := post(t, barrier(3), devices[0], number(i))
				if !ended(o) {
					t.Errorf("call %d is in progress", number(i))
				}
				cause(t, outcome(t, o), 1, collective.CauseTimeout)
			}
			o := post(t, barrier(3), devices[0], number(ahead)) // the abort of this call exceeded the limit
			abortCall(t, o, time.Second)
			synctest.Wait()
			for i := 1; i <= 64; i++ {
				cause(t, outcome(t, post(t, barrier(3), devices[2], number(i))), 1, collective.CauseTimeout)
			}
			all(t, barrier(3), devices, number(ahead+1))
			// The abort of a call that is never made is forgotten when the number has passed.
			abortCall(t, post(t, barrier(3), devices[1], number(ahead+2)), time.Second)
			synctest.Wait()
			all(t, barrier(3), devices, number(ahead+3))
			all(t, barrier(3), devices, number(ahead+2))
			all(t, barrier(3), devices, number(3))
		})
	}
}

// TestAbortByAnEarlierProgram checks that the aborts of one program do not end calls of the next one, even if
// their numbers are equal.
func TestAbortByAnEarlierProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		devices := c.communicator(1)
		all(t, barrier(3), devices, 1)
		x := listen(c)
		abortCall(t, post(t, barrier(3), devices[0], 3), time.Second)
		synctest.Wait()
		for _, e := range c.engines {
			e.ProgramEnded(true)
		}
		again := func() {
			for at, text := range x.all() {
				deliverAbort(t, c.engines[at[0]], int(at[1]), text)
			}
			synctest.Wait()
		}
		if len(x.all()) != 2 {
			t.Errorf("%d messages", len(x.all()))
		}
		again()
		for i := 1; i < 5; i++ {
			all(t, barrier(3), devices, i)
			again()
		}
	})
}

// TestAbortTooLate checks that an abort that was sent before the agreement, to a rank that was absent, is dropped
// when the program ends. Otherwise the first call of the next program would fail.
func TestAbortTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks, away = 8, 7
		c := newExtended(t, ranks, nil)
		defer c.close()
		devices := c.communicator(1)
		x := listen(c)
		x.losing(func(from, to int) bool { return from == away || to == away })
		a, b := post(t, barrier(ranks), devices[0], 1), post(t, barrier(ranks), devices[1], 1)
		abortCall(t, a, time.Second)
		cause(t, outcome(t, b), 0, collective.CauseTimeout)
		for _, e := range c.engines[:away] {
			e.ProgramEnded(true)
		}
		synctest.Wait()
		var ops []mpe.Op
		for _, d := range devices {
			ops = append(ops, post(t, barrier(ranks), d, 1))
		}
		x.losing(func(from, to int) bool { return from == away && to > 0 || to == away && from > 0 })
		time.Sleep(5 * time.Second) // rank 0 detects that the peer is present
		x.losing(nil)
		finish(t, ops...)
	})
}

// TestForgedFailures checks that aborts from non-members or of other calls, duplicates, and aborts in an
// unknown form have no effect.
func TestForgedFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		world := c.communicator(1)
		all(t, barrier(3), world, 1)
		x := listen(c)
		abortCall(t, post(t, barrier(3), world[1], 2), time.Second)
		synctest.Wait()
		var epoch uint64
		for at, text := range x.all() {
			if epoch = binary.LittleEndian.Uint64(text); at[0] != 1 || epoch == 0 ||
				binary.LittleEndian.Uint32(text[8:]) != 1 || binary.LittleEndian.Uint32(text[12:]) != 2 ||
				!bytes.Equal(text[16:], []byte{byte(coll.Barrier), byte(collective.CauseTimeout), 0, 0}) {
				t.Errorf("rank %d sends %x", at[0], text)
			}
		}
		for _, r := range []int{0, 2} {
			cause(t, outcome(t, post(t, barrier(3), world[r], 2)), 1, collective.CauseTimeout)
		}
		pair := []mpe.Device{c.engines[0], c.engines[1]} // also for communicator 1, after ranks have forgotten it
		for _, e := range c.engines {
			e.ProgramEnded(true)
		}
		two := colltest.NewCase(coll.Allreduce, "", 2, 0, 10)
		all(t, two, pair, 1)
		under := post(t, two, pair[0], 2)
		text := func(epoch uint64, comm, number uint32, kind ...byte) []byte {
			b := binary.LittleEndian.AppendUint64(nil, epoch)
			b = binary.LittleEndian.AppendUint32(b, comm)
			return append(binary.LittleEndian.AppendUint32(b, number), kind...)
		}
		for _, b := range [][]byte{
			text(epoch, 1, 2, 1, 1, 0, 0), text(0, 1, 2, 1, 1, 0, 0), text(epoch+1, 1, 2, 255, 255, 255, 255),
			text(1<<64-1, 1, 2, 0, 0, 0, 0),
			text(0, 1, 3, 1, 1, 0, 0), text(epoch, 1, 3, 1, 1, 0, 0), text(epoch, 7, 2, 1, 1, 0, 0),
			text(epoch, 1, 1<<32-1, 1, 1, 0, 0),
			text(epoch, 1, 2), text(epoch, 1, 2, 1, 1, 0, 0, 0), make([]byte, 100_000),
		} {
			for range 2 {
				deliverAbort(t, c.engines[1], 0, b)
				deliverAbort(t, c.engines[2], 0, b) // not a member
			}
		}
		finish(t, under, post(t, two, pair[1], 2))
		all(t, two, pair, 3)
		if s := c.engines[0].Snapshot(); s.Unexpected != 0 {
			t.Errorf("%d unexpected messages", s.Unexpected)
		}
		// With the right epoch, it is effective, but only from a member.
		x.forget()
		abortCall(t, post(t, two, pair[1], 4), time.Second)
		synctest.Wait()
		for _, b := range x.all() {
			epoch = binary.LittleEndian.Uint64(b)
		}
		deliverAbort(t, c.engines[2], 0, text(epoch, 1, 5, 255, 255, 0, 0))
		for i := range uint32(100) { // these aborts do not displace others
			deliverAbort(t, c.engines[1], 0, text(epoch+1, 1, 6+i, 1, 1, 0, 0))
		}
		deliverAbort(t, c.engines[1], 0, text(epoch, 1, 200, 1, 2, 0, 0))
		synctest.Wait()
		cause(t, outcome(t, post(t, two, pair[0], 4)), 1, collective.CauseTimeout)
		under = post(t, two, pair[0], 5)
		deliverAbort(t, c.engines[2], 0, text(epoch, 1, 5, 255, 255, 0, 0))
		synctest.Wait()
		if ended(under) {
			t.Error("a rank that is not a member ended a call")
		}
		deliverAbort(t, c.engines[1], 0, text(epoch, 1, 5, 255, 255, 0, 0))
		err := outcome(t, under)
		cause(t, err, 1, collective.FailureCause(255))
		if want := "rank 1 has abandoned ?, call 5 in communicator 1: it has failed there"; err.Error() != want {
			t.Errorf("%v", err)
		}
		cause(t, outcome(t, post(t, two, pair[0], 200)), 1, collective.CauseCancelled)
	})
}

// TestNoAbortByOrder checks that ranks that know only Send and Recv get no abort, and continue to wait.
func TestNoAbortByOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, handshake.SoftwarePeer(), nil)
		defer c.close()
		a, b := begin(t, barrier(3), c.engines[0], 1), begin(t, barrier(3), c.engines[1], 1)
		abortCall(t, a, time.Second)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := b.Await(ctx); !errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, collective.ErrCallFailed) {
			t.Errorf("%v", err)
		}
	})
}

// TestAbortWhileComputing checks that a user's function keeps the buffers until it returns, whatever aborts
// its rank gets.
func TestAbortWhileComputing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		all(t, barrier(3), c.communicator(1), 1)
		computing, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		start := func(r int) mpe.Op {
			o, err := c.engines[r].StartCollective(&collective.Operation{
				Call:    coll.Call{Collective: coll.Reduce, Rank: r, Ranks: 3, Bytes: 1},
				Members: []int{0, 1, 2}, Comm: 1, Tag: 2, Send: []byte{1}, Recv: make([]byte, 1), Algorithm: "flat",
				User: func(in, inout []byte) error {
					once.Do(func() { close(computing) })
					<-goOn
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		root, leaf := start(0), start(1)
		<-computing
		finish(t, leaf)
		var epoch uint64
		x := listen(c)
		abortCall(t, post(t, barrier(3), c.communicator(1)[2], 3), time.Second)
		synctest.Wait()
		for _, b := range x.all() {
			epoch = binary.LittleEndian.Uint64(b)
		}
		b := binary.LittleEndian.AppendUint64(nil, epoch)
		b = append(b, 1, 0, 0, 0, 2, 0, 0, 0, byte(coll.Reduce), byte(collective.CauseCancelled), 0, 0)
		deliverAbort(t, c.engines[2], 0, b)
		deliverAbort(t, c.engines[2], 0, b)
		synctest.Wait()
		if ended(root) {
			t.Error("it is done while the function has its buffers")
		}
		close(goOn)
		cause(t, outcome(t, root), 2, collective.CauseCancelled)
	})
}

// TestFailsWhileComputing checks that a cancellable user's function does not delay the failure of its call.
func TestFailsWhileComputing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		all(t, barrier(3), c.communicator(1), 1)
		computing, cancelled := make(chan struct{}), make(chan error, 1)
		start := func(r, bytes int) mpe.Op {
			o, err := c.engines[r].StartCollective(&collective.Operation{
				Call:    coll.Call{Collective: coll.Reduce, Rank: r, Ranks: 3, Bytes: bytes},
				Members: []int{0, 1, 2}, Comm: 1, Tag: 2, Send: make([]byte, bytes), Recv: make([]byte, bytes),
				Algorithm: "flat",
				User: func(_, _ []byte) error {
					close(computing)
					return <-cancelled
				},
				CancelUser: func(cause error) { cancelled <- cause },
			})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		root, leaf := start(0, 2), start(1, 2)
		<-computing
		short := start(2, 1)
		synctest.Wait()
		_, over, err := root.Test()
		if step, ok := errors.AsType[*collective.StepError](err); !over || !ok ||
			!errors.Is(err, collective.ErrMismatch) || step.Peer != 2 {
			t.Errorf("it is done: %v, %v", over, err)
		}
		root.Free()
		finish(t, leaf, short)
	})
}

// TestCausesOfAborts checks that an abort reports the cause on the rank that failed first.
func TestCausesOfAborts(t *testing.T) {
	chain := func(n int) *colltest.Case { return colltest.NewCase(coll.Bcast, "chain", 4, 0, n) }
	for name, test := range map[string]struct {
		second int // elements that rank 1 expects
		want   collective.FailureCause
		err    error
	}{
		"too short": {500, collective.CauseMismatch, collective.ErrMismatch},
		"too long":  {50, collective.CauseTruncated, mpe.ErrTruncated},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, 4, nil)
			defer c.close()
			devices := c.communicator(1)
			all(t, barrier(4), devices, 1)
			x := chain(100)
			ops := []mpe.Op{post(t, x, devices[0], 2), post(t, chain(test.second), devices[1], 2),
				post(t, x, devices[2], 2), post(t, x, devices[3], 2)}
			if err := outcome(t, ops[1]); !errors.Is(err, test.err) {
				t.Errorf("%s: rank 1: %v", name, err)
			}
			for _, r := range []int{2, 3} {
				cause(t, outcome(t, ops[r]), 1, test.want)
			}
			finish(t, ops[0])
		})
	}
	synctest.Test(t, func(t *testing.T) { // rank 2 loses rank 3
		c := newExtended(t, 4, func(x *extended.Config) { x.EagerLimit = -1 })
		defer c.close()
		devices := c.communicator(1)
		all(t, barrier(4), devices, 1)
		listen(c).losing(func(from, to int) bool { return from == 3 && to == 2 || from == 2 && to == 3 })
		x := colltest.NewCase(coll.Barrier, "dissemination", 4, 0, 0)
		var ops []mpe.Op
		for _, d := range devices[:3] {
			ops = append(ops, post(t, x, d, 2))
		}
		for r, o := range ops {
			err := outcome(t, o)
			var failed *collective.CallFailedError
			switch {
			case r == 2:
				if !errors.Is(err, extended.ErrTimeout) {
					t.Errorf("rank 2: %v", err)
				}
			case !errors.As(err, &failed) || failed.Cause != collective.CausePeerLost:
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

// TestCloseAborts checks that a closing engine sends aborts, and does not wait long for absent ranks.
func TestCloseAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 16, nil)
		defer c.close()
		devices := c.communicator(1)
		all(t, barrier(16), devices, 1)
		var ops []mpe.Op
		for _, r := range []int{3, 4, 5, 6, 7} {
			ops = append(ops, post(t, barrier(16), devices[r], 2))
		}
		synctest.Wait() // until the answers of rank 15 are received, with the first round trips
		listen(c).losing(func(from, to int) bool { return from == 15 || to == 15 })
		begun := time.Now()
		if err := c.engines[3].Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second { // in simulated time
			t.Errorf("it takes %v", took)
		}
		if err := outcome(t, ops[0]); !errors.Is(err, mpe.ErrClosed) {
			t.Errorf("%v", err)
		}
		for _, o := range ops[1:] {
			cause(t, outcome(t, o), 3, collective.CauseClosing)
		}
	})
}

// TestCloseEndsCallsInTransfer checks that a call whose messages are all in flight ends with its engine.
func TestCloseEndsCallsInTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.EagerLimit = -1 })
		defer c.close()
		devices := c.communicator(1)
		all(t, barrier(2), devices, 1)
		c.net.SetHook(func(from, _ int, b []byte) []time.Duration {
			if h, _, d := protocol.ParseExtended(b); d.OK() && from == 0 && h.Type == protocol.Data {
				return nil
			}
			return []time.Duration{0}
		})
		x := colltest.NewCase(coll.Bcast, "binomial", 2, 0, 10)
		post(t, x, devices[0], 2)
		o := post(t, x, devices[1], 2)
		time.Sleep(time.Second)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		c.engines[1].Close(ctx)
		if err := outcome(t, o); !errors.Is(err, mpe.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}
