package steps_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/coll/steps"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// one starts the call of one rank; members are in the order of the world.
func one(t *testing.T, d mpe.Device, c coll.Call, recv []byte, change ...func(*mpe.Collective)) mpe.Op {
	t.Helper()
	x := mpe.Collective{Call: c, Comm: 7, Tag: 3, Recv: recv, Type: op.Int8, Op: op.Sum}
	for r := range c.Ranks {
		x.Members = append(x.Members, r)
	}
	x.Call.Rank = d.Rank()
	for _, f := range change {
		f(&x)
	}
	o, err := steps.Start(d, &x)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// ended is a context that has.
func ended() context.Context {
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errEnough)
	return ctx
}

var errEnough = errors.New("enough")

// The error of a call that its context ends says which step waits for whom, and who
// else is waited for.
func TestDeadline(t *testing.T) {
	devices := world(t, 4, mpitest.Options{Eager: -1})
	root := one(t, devices[1], coll.Call{Collective: coll.Gather, Ranks: 4, Root: 1, Bytes: 4, InPlace: true}, make([]byte, 16))
	leaf := one(t, devices[2], coll.Call{Collective: coll.Gather, Ranks: 4, Root: 1, Bytes: 4}, nil, func(c *mpe.Collective) { c.Send = []byte("leaf") })
	if _, err := leaf.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	leaf.Free()
	_, err := root.Wait(ended())
	var step *mpe.StepError
	var wait *mpe.WaitError
	if !errors.As(err, &step) || !errors.As(err, &wait) || !errors.Is(err, errEnough) {
		t.Fatalf("it ends with %v", err)
	}
	if step.Collective != coll.Gather || step.Number != 1 || step.Kind != coll.StepRecv || step.Peer != 0 || wait.Remote != 0 {
		t.Errorf("%+v", step)
	}
	if !slices.Equal(step.Others, []int{3}) { // of rank 2 there is no word
		t.Errorf("others are %v", step.Others)
	}
	for _, part := range []string{"Gather by flat, step 1, receive of 4 bytes from rank 0: ", "messages were under way with rank 3, too"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if _, done, again := root.Test(); !done || !errors.Is(again, err) {
		t.Errorf("then Test says %v, %v", done, again)
	}
	root.Cancel() // too late
	root.Free()
	// Nothing is left of it: the next call meets the next messages.
	again := one(t, devices[0], coll.Call{Collective: coll.Gather, Ranks: 4, Root: 1, Bytes: 4}, nil, func(c *mpe.Collective) { c.Send = []byte("none") })
	again.Cancel()
	if _, err := again.Wait(within(t)); !errors.Is(err, mpe.ErrCancelled) {
		t.Errorf("a message has found a receive of the call that was given up: %v", err)
	}
	again.Free()
}

// What others need not wait for goes on to the end although the context has ended.
func TestEndedContext(t *testing.T) {
	devices := world(t, 2, mpitest.Options{Eager: 1 << 10})
	sum := []byte{1}
	a := one(t, devices[0], coll.Call{Collective: coll.Allreduce, Ranks: 2, Bytes: 1, InPlace: true}, sum)
	b := one(t, devices[1], coll.Call{Collective: coll.Allreduce, Ranks: 2, Bytes: 1, InPlace: true}, []byte{2})
	for _, x := range []mpe.Op{b, a} {
		if _, err := x.Wait(ended()); err != nil {
			t.Error(err)
		}
		x.Free()
	}
	if sum[0] != 3 {
		t.Errorf("the sum is %d", sum[0])
	}
}

// Cancel takes back what is under way, and nothing more begins.
func TestCancel(t *testing.T) {
	devices := world(t, 2, mpitest.Options{Eager: -1})
	all, wrapped := watch(devices)
	barrier := coll.Call{Collective: coll.Barrier, Ranks: 2}
	x := one(t, wrapped[0], barrier, nil, func(c *mpe.Collective) { c.Algorithm = "toggle" }) // waits for rank 1
	begun := len(all[0].posted)
	x.Cancel()
	x.Cancel()
	if _, err := x.Wait(within(t)); !errors.Is(err, mpe.ErrCancelled) {
		t.Errorf("it ends with %v", err)
	}
	x.Free()
	if len(all[0].posted) != begun {
		t.Errorf("%d messages were posted after it was cancelled", len(all[0].posted)-begun)
	}
	// Where it comes too late, the call ends as if nothing had been asked.
	x = one(t, devices[0], barrier, nil)
	y := one(t, devices[1], barrier, nil)
	x.Cancel()
	for _, z := range []mpe.Op{x, y} {
		if _, err := z.Wait(within(t)); err != nil {
			t.Error(err)
		}
		z.Free()
	}
}

// Cancel may come from elsewhere while somebody waits.
func TestCancelOfWaiting(t *testing.T) {
	devices := world(t, 2, mpitest.Options{Eager: -1})
	x := one(t, devices[0], coll.Call{Collective: coll.Bcast, Ranks: 2, Root: 1, Bytes: 8}, make([]byte, 8))
	go x.Cancel()
	if _, err := x.Wait(within(t)); !errors.Is(err, mpe.ErrCancelled) {
		t.Errorf("it ends with %v", err)
	}
	x.Free()
}

// Whoever is to be told learns of messages that were not there when he asked.
func TestNotify(t *testing.T) {
	const n = 8 // three rounds
	devices := world(t, n, mpitest.Options{Eager: -1})
	barrier := coll.Call{Collective: coll.Barrier, Ranks: n}
	ctx := within(t)
	failed := make(chan error, n)
	for _, d := range devices {
		x := one(t, d, barrier, nil)
		go func() {
			wake := make(chan struct{}, 1)
			x.Notify(wake)
			for {
				if _, done, err := x.Test(); done {
					x.Free()
					failed <- err
					return
				}
				if err := d.Await(ctx, wake); err != nil {
					x.Cancel()
					failed <- err
					return
				}
			}
		}()
	}
	for range devices {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	// At once if it has ended already, and not after it was revoked.
	a, b := one(t, devices[0], coll.Call{Collective: coll.Barrier, Ranks: 1}, nil), make(chan struct{}, 1)
	a.Notify(b)
	<-b
	a.Notify(nil)
	a.Free()
	x := one(t, devices[0], coll.Call{Collective: coll.Barrier, Ranks: 2}, nil)
	x.Notify(b)
	x.Notify(nil)
	x.Cancel()
	if _, done, err := x.Test(); !done || !errors.Is(err, mpe.ErrCancelled) {
		t.Errorf("Test says %v, %v", done, err)
	}
	x.Free()
	select {
	case <-b:
		t.Error("it tells somebody who has revoked it")
	default:
	}
	// The end is told as well.
	x = one(t, devices[0], coll.Call{Collective: coll.Barrier, Ranks: 2}, nil)
	x.Notify(b)
	x.Cancel()
	<-b
	if _, err := x.Wait(ctx); !errors.Is(err, mpe.ErrCancelled) {
		t.Error(err)
	}
	x.Free()
}

// A step that fails ends the call, and what else is under way is taken back.
func TestFailures(t *testing.T) {
	gather := coll.Call{Collective: coll.Gather, Ranks: 3, Bytes: 4, InPlace: true}
	leaf := func(t *testing.T, d mpe.Device, bytes int) mpe.Op {
		c := gather
		c.Bytes, c.InPlace = bytes, false
		return one(t, d, c, nil, func(c *mpe.Collective) { c.Send = make([]byte, bytes) })
	}
	t.Run("too long", func(t *testing.T) {
		devices := world(t, 3, mpitest.Options{Eager: 1 << 10})
		root := one(t, devices[0], gather, make([]byte, 12))
		leaf(t, devices[2], 8).Free()
		_, err := root.Wait(within(t))
		var step *mpe.StepError
		if !errors.Is(err, mpe.ErrTruncated) || !errors.As(err, &step) || step.Peer != 2 || step.Number != 2 {
			t.Errorf("it ends with %v", err)
		}
		root.Free()
	})
	t.Run("too short", func(t *testing.T) {
		devices := world(t, 3, mpitest.Options{Eager: 1 << 10})
		root := one(t, devices[0], gather, make([]byte, 12))
		leaf(t, devices[1], 2).Free()
		_, err := root.Wait(within(t))
		if !errors.Is(err, mpe.ErrMismatch) || !strings.Contains(err.Error(), "step 1, receive of 4 bytes from rank 1: it has 2 bytes") {
			t.Errorf("it ends with %v", err)
		}
		root.Free()
	})
	t.Run("not posted", func(t *testing.T) {
		all, devices := watch(world(t, 3, mpitest.Options{Eager: -1}))
		all[0].fail = func(o *mpe.Operation) error {
			if o.Peer == 2 {
				return mpe.ErrFull
			}
			return nil
		}
		root := one(t, devices[0], gather, make([]byte, 12))
		if _, done, err := root.Test(); !done || !errors.Is(err, mpe.ErrFull) || !strings.Contains(err.Error(), "from rank 2") {
			t.Errorf("it has ended: %v, with %v", done, err)
		}
		root.Free()
	})
	t.Run("no room", func(t *testing.T) {
		devices := world(t, 3, mpitest.Options{Eager: -1})
		root := one(t, devices[0], gather, make([]byte, 10))
		if _, err := root.Wait(within(t)); !errors.Is(err, coll.ErrCall) || !strings.Contains(err.Error(), "4 bytes at 8 of the receive buffer, which has 10") {
			t.Errorf("it ends with %v", err)
		}
		root.Free()
		alone := one(t, devices[0], coll.Call{Collective: coll.Scan, Ranks: 1, Bytes: 4, Elem: 1}, make([]byte, 4))
		_, err := alone.Wait(within(t))
		var step *mpe.StepError
		if !errors.As(err, &step) || step.Peer != -1 || !strings.Contains(err.Error(), "step 1, copy of 4 bytes: ") {
			t.Errorf("it ends with %v", err)
		}
		alone.Free()
	})
}

// An operation that has not ended keeps its memory.
func TestFree(t *testing.T) {
	devices := world(t, 2, mpitest.Options{Eager: -1})
	buf := make([]byte, 8)
	x := one(t, devices[0], coll.Call{Collective: coll.Bcast, Ranks: 2, Root: 1, Bytes: 8}, buf)
	x.Free()
	y := one(t, devices[1], coll.Call{Collective: coll.Bcast, Ranks: 2, Root: 1, Bytes: 8}, []byte("received"))
	for _, z := range []mpe.Op{x, y} {
		if _, err := z.Wait(within(t)); err != nil {
			t.Error(err)
		}
		z.Free()
	}
	if !bytes.Equal(buf, []byte("received")) {
		t.Errorf("%q was received", buf)
	}
}
