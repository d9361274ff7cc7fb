package mpe_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// deadEnds starts a cluster that loses every continuation datagram to a rank of gone.
func deadEnds(t *testing.T, ranks int, gone ...int) *cluster {
	c := newCluster(t, ranks, handshake.FPGAPeer(1), nil)
	lost := map[int]bool{}
	for _, rank := range gone {
		lost[rank] = true
	}
	c.net.SetHook(func(_, to int, b []byte) []time.Duration {
		if _, defect := protocol.CloudFPGA.Parse(b); lost[to] && !defect.OK() {
			return nil
		}
		return []time.Duration{0}
	})
	return c
}

// enter sends a message from rank 0 to a rank that does not get all of it, and returns the error.
func (c *cluster) enter(rank int) error {
	c.t.Helper()
	if _, err := c.engines[rank].Irecv(0, make([]byte, 4000), mpe.Options{}); err != nil {
		c.t.Fatal(err)
	}
	_, err := c.engines[0].Send(c.t.Context(), rank, words(1000, 1), mpe.Options{})
	if !errors.Is(err, handshake.ErrPartial) || errors.Is(err, handshake.ErrDeadEnd) {
		c.t.Fatal(err)
	}
	return err
}

// endsBy checks that an operation failed because of the dead end of a rank.
func endsBy(t *testing.T, what string, err error, rank uint32) {
	t.Helper()
	dead, ok := errors.AsType[*handshake.DeadEndError](err)
	if !ok || dead.Remote != rank || !errors.Is(err, handshake.ErrPartial) ||
		!strings.Contains(err.Error(), "did not acknowledge 1000 words") {
		t.Errorf("%s: %v", what, err)
	}
}

// TestDeadEnd checks that operations that wait for a peer in a dead end, and later ones, fail with the first cause.
func TestDeadEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deadEnds(t, 3, 1)
		defer c.close()
		e := c.engines[0]
		post := func(op mpe.Operation) mpe.Op {
			t.Helper()
			r, err := e.Start(op)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		pending := map[string]mpe.Op{"a posted receive": post(mpe.Operation{Kind: mpe.OpRecv, Peer: 1,
			Buf: make([]byte, 4)})}
		any, other := post(mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Buf: make([]byte, 4)}),
			post(mpe.Operation{Kind: mpe.OpRecv, Peer: 2, Buf: make([]byte, 4)})
		probed := make(chan error, 1)
		go func() {
			_, _, err := e.Probe(t.Context(), mpe.Match{Source: 1}, true)
			probed <- err
		}()
		synctest.Wait()
		first := make(chan error, 1)
		go func() { first <- c.enter(1) }()
		time.Sleep(time.Second)
		pending["a queued send"] = post(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 4)})
		<-first
		synctest.Wait()
		for what, op := range pending {
			_, done, err := op.Test()
			if !done {
				t.Fatalf("%s is not done", what)
			}
			endsBy(t, what, err, 1)
		}
		endsBy(t, "a probe", <-probed, 1)
		began := time.Now()
		for what, op := range map[string]mpe.Operation{
			"a later send":    {Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 4)},
			"a later receive": {Kind: mpe.OpRecv, Peer: 1, Buf: make([]byte, 4)},
		} {
			_, err := post(op).Await(t.Context())
			endsBy(t, what, err, 1)
		}
		_, _, err := e.Probe(t.Context(), mpe.Match{Source: 1}, false)
		endsBy(t, "a later probe", err, 1)
		if d := time.Since(began); d > 0 {
			t.Errorf("they took %v", d)
		}
		for what, op := range map[string]mpe.Op{"from any source": any, "from another rank": other} {
			if _, done, err := op.Test(); done {
				t.Errorf("a receive %s: %v", what, err)
			}
		}
		if s := e.Snapshot().Peers[0]; !strings.Contains(s.Refuses, "did not acknowledge 1000 words") {
			t.Errorf("the status says %q", s.Refuses)
		}
		// The user restarts the peer, whose receive of the first message is complete.
		time.Sleep(time.Minute)
		if err := errors.Join(c.engines[1].Reset(0), e.Reset(1)); err != nil {
			t.Fatal(err)
		}
		in, err := c.engines[1].Irecv(0, make([]byte, 4000), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Send(t.Context(), 1, words(1, 2), mpe.Options{}); err != nil {
			t.Errorf("after Reset: %v", err)
		}
		if _, err := in.Wait(t.Context()); err != nil {
			t.Errorf("after Reset: %v", err)
		}
	})
}

// TestDeadEndOfAllSenders checks that a receive from any source ends when no remaining rank can send it a message.
func TestDeadEndOfAllSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deadEnds(t, 3, 1, 2)
		defer c.close()
		e := c.engines[0]
		any, err := e.Irecv(mpe.AnySource, make([]byte, 4), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.enter(1)
		synctest.Wait()
		if _, done, err := any.Test(); done {
			t.Fatalf("one sender is left: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := e.Recv(ctx, mpe.AnySource, make([]byte, 4), mpe.Options{}); errors.Is(err, handshake.ErrDeadEnd) {
			t.Errorf("one sender is left: %v", err)
		}
		cancel()
		probed := make(chan error, 1)
		go func() {
			_, _, err := e.Probe(t.Context(), mpe.Match{Source: mpe.AnySource}, true)
			probed <- err
		}()
		c.enter(2)
		_, err = any.Wait(t.Context())
		endsBy(t, "the receive", err, 1)
		endsBy(t, "a probe", <-probed, 1)
		_, err = e.Recv(t.Context(), mpe.AnySource, make([]byte, 4), mpe.Options{})
		endsBy(t, "a later receive", err, 1)
		// One of the peers is restarted, and continues.
		time.Sleep(time.Minute)
		if err := c.engines[2].Reset(0); err != nil {
			t.Fatal(err)
		}
		if _, err := c.engines[2].Isend(0, words(1, 5), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // it requests three times
		if st, err := e.Recv(t.Context(), mpe.AnySource, make([]byte, 4), mpe.Options{}); err != nil || st.Peer != 2 {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// TestDeadEndAbortsCalls checks that a call that fails at once because of a dead end also ends on the other
// members, even if they make the call later.
func TestDeadEndAbortsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, net: memnet.New(3)}
		defer c.close()
		c.net.SetHook(func(_, to int, b []byte) []time.Duration {
			if _, defect := protocol.CloudFPGA.Parse(b); to == 1 && !defect.OK() {
				return nil
			}
			return []time.Duration{0}
		})
		for rank := range 3 {
			tr, cfg := c.net.Transport(rank), mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 3)}
			for other := range 3 {
				cfg.Peers[other] = mpe.Peer{Transport: tr, Handshake: handshake.Config{
					Peer: handshake.FPGAPeer(1), Shape: protocol.CPUShape(),
					Timing: handshake.DefaultTiming(handshake.FPGAPeer(1)), MaxWords: 1 << 20,
				}}
				if rank != 1 && other != 1 {
					cfg.Peers[other].Extended = &extended.Config{Seed: uint64(rank*3 + other + 1)}
				}
			}
			e, err := mpe.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.engines = append(c.engines, e)
		}
		bcast := func(rank, number int) error {
			b := make([]byte, 4000)
			op, err := c.engines[rank].StartCollective(&collective.Operation{
				Call:    coll.Call{Collective: coll.Bcast, Ranks: 3, Rank: rank, Bytes: len(b), Elem: 4},
				Members: []int{0, 1, 2}, Recv: b, Tag: number,
			})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = op.Await(ctx)
			return err
		}
		if _, err := c.engines[1].Irecv(0, make([]byte, 4000), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		other := make(chan error, 1)
		go func() { other <- bcast(2, 1) }()
		if err := bcast(0, 1); !errors.Is(err, handshake.ErrPartial) {
			t.Fatal(err)
		}
		if err := <-other; err != nil && !errors.Is(err, collective.ErrCallFailed) {
			t.Errorf("the first call: %v", err)
		}
		for number := 2; number < 5; number++ {
			endsBy(t, "a later call", bcast(0, number), 1)
		}
		time.Sleep(time.Second)
		for number := 2; number < 5; number++ {
			if err := bcast(2, number); !errors.Is(err, collective.ErrCallFailed) {
				t.Errorf("call %d of another member: %v", number, err)
			}
		}
	})
}

// TestDeadEndOfAMember checks that a collective call with a rank in a dead end fails, and so does the next one.
func TestDeadEndOfAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deadEnds(t, 3, 1)
		defer c.close()
		for _, rank := range []int{1, 2} {
			for range 2 {
				if _, err := c.engines[rank].Irecv(0, make([]byte, 4000), mpe.Options{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		call := func(what coll.Collective, tag int) error {
			b := make([]byte, 4000)
			op, err := c.engines[0].StartCollective(&collective.Operation{
				Call: coll.Call{Collective: what, Ranks: 3, Bytes: len(b), Elem: 4}, Members: []int{0, 1, 2}, Send: b,
				Recv: make([]byte, 3*len(b)), Tag: tag,
			})
			if err != nil {
				return err
			}
			_, err = op.Await(t.Context())
			return err
		}
		if err := call(coll.Bcast, 1); !errors.Is(err, handshake.ErrPartial) {
			t.Fatal(err)
		}
		began := time.Now()
		endsBy(t, "Gather", call(coll.Gather, 2), 1)
		endsBy(t, "Bcast", call(coll.Bcast, 3), 1)
		if d := time.Since(began); d > 0 {
			t.Errorf("they took %v", d)
		}
	})
}
