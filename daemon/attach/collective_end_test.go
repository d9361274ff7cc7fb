package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

var errEnough = errors.New("enough")

// callOf returns a call by rank r of n. Its communicator contains all ranks of the world.
func callOf(of coll.Collective, r, n, tag int, send, recv []byte) *collective.Operation {
	m := &collective.Operation{Call: coll.Call{Collective: of, Rank: r, Ranks: n, Elem: 4, Bytes: len(send)}, Comm: 1,
		Tag:  tag,
		Send: send, Recv: recv, Op: op.Sum, Type: op.Int32}
	if of == coll.Bcast {
		m.Call.Bytes = len(recv)
	}
	for i := range n {
		m.Members = append(m.Members, i)
	}
	return m
}

func call1(t testing.TB, d mpe.Device, m *collective.Operation) mpe.Op {
	t.Helper()
	o, err := d.StartCollective(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// barriers executes a Barrier on all ranks.
func barriers(t *testing.T, devices []mpe.Device, tag int) {
	t.Helper()
	var ops []mpe.Op
	for r, d := range devices {
		ops = append(ops, call1(t, d, callOf(coll.Barrier, r, len(devices), tag, nil, nil)))
	}
	for _, o := range ops {
		attachtest.Wait(t, o)
		o.Free()
	}
}

// calls returns the calls that are in progress on a rank.
func calls(d mpe.Device) []collective.Snapshot { return d.(*mpe.Engine).Snapshot().Calls }

// TestDeadline checks that a call fails with the daemon's error when the context of its caller ends. The error
// names the step, and the rank that the call was waiting for.
func TestDeadline(t *testing.T) {
	devices := engines(t, 4, nil)
	client := attachSome(t, devices, 0)[0]
	all := append([]mpe.Device{client}, devices[1:]...)
	barriers(t, all, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnough)
	recv := bytes.Repeat([]byte{0xee}, 16)
	m := callOf(coll.Gather, 0, 4, 2, []byte("root"), recv)
	m.Algorithm = "flat"
	o := call1(t, client, m)
	_, err := o.Await(ctx)
	step, ok := errors.AsType[*collective.StepError](err)
	if !ok || step.Collective != coll.Gather || step.Algorithm != "flat" || step.Peer < 1 ||
		step.Kind != coll.StepRecv || len(step.Others) != 2 {
		t.Fatalf("%v: %+v", err, step)
	}
	if w, ok := errors.AsType[*mpe.WaitError](err); !ok || w.Local != 0 || int(w.Remote) != step.Peer ||
		!errors.Is(err, errEnough) {
		t.Errorf("%v: %+v", err, w)
	}
	if want := fmt.Sprintf("receive of 4 bytes from rank %d: rank 0 has waited",
		step.Peer); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "enough") {
		t.Errorf("%q does not say %q", err, want)
	}
	if !bytes.Equal(recv, bytes.Repeat([]byte{0xee}, 16)) {
		t.Errorf("the receive buffer is %x", recv)
	}
	if _, ended, again := o.Test(); !ended || again != err {
		t.Errorf("then Test says %v", again)
	}
	o.Free()
	if list := calls(devices[0]); len(list) > 0 {
		t.Errorf("in progress: %+v", list)
	}
	barriers(t, all, 3)
}

// TestOthersAreAborted checks that, when a program aborts a call or exits, the calls of all other ranks fail,
// whether made by programs or directly on engines.
func TestOthersAreAborted(t *testing.T) {
	devices := engines(t, 4, nil)
	h := serveDevices(t, devices, Options{})
	all := h.attachSome(t, devices, 0, 1)
	barriers(t, all, 1)
	check := func(d mpe.Device, o mpe.Op, want collective.CallFailedError) {
		t.Helper()
		_, err := o.Await(attachtest.TestContext(t))
		if err == nil && d.Rank() == 3 {
			return // the call completed before the abort
		}
		failed, ok := errors.AsType[*collective.CallFailedError](err)
		if !ok || *failed != want || !errors.Is(err, collective.ErrCallFailed) || errors.Is(err, context.Canceled) ||
			errors.Is(err, mpe.ErrCancelled) || err.Error() != want.Error() {
			t.Errorf("rank %d: %v, %+v", d.Rank(), err, failed)
		}
		o.Free()
	}
	barrier := func(r, tag int) mpe.Op {
		return call1(t, all[r], callOf(coll.Barrier, r, 4, tag, nil, nil))
	}
	for i, cause := range []error{context.Canceled, context.DeadlineExceeded, errEnough} {
		tag := 2 + i
		want := collective.CallFailedError{Rank: 0, Collective: coll.Barrier, Comm: 1, Number: tag,
			Cause: collective.CauseCancelled}
		if cause == context.DeadlineExceeded {
			want.Cause = collective.CauseTimeout
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		one, other, own := barrier(1, tag), barrier(2, tag), barrier(0, tag)
		if _, err := own.Await(ctx); !errors.Is(err, cause) || errors.Is(err, collective.ErrCallFailed) {
			t.Errorf("rank 0: %v", err)
		}
		own.Free()
		check(all[1], one, want)
		check(all[2], other, want)
		check(all[3], barrier(3, tag), want) // the abort arrives before or after this
	}
	other := barrier(2, 5)
	barrier(1, 5)
	h.session(1).stream.HangUp() // as if the program had been killed
	check(all[2], other, collective.CallFailedError{Rank: 1, Collective: coll.Barrier, Comm: 1, Number: 5,
		Cause: collective.CauseCancelled})
}

// TestDeadlineAlone checks a call that is waiting for the members to agree.
func TestDeadlineAlone(t *testing.T) {
	devices := engines(t, 2, nil)
	client := attachSome(t, devices, 0)[0]
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnough)
	o := call1(t, client, callOf(coll.Barrier, 0, 2, 1, nil, nil))
	if _, err := o.Await(ctx); !errors.Is(err, errEnough) {
		t.Errorf("%v", err)
	}
	o.Free()
	if list := calls(devices[0]); len(list) > 0 {
		t.Errorf("in progress: %+v", list)
	}
}

// TestMismatch checks that all ranks get an error if they make different calls.
func TestMismatch(t *testing.T) {
	mixed := attachSome(t, engines(t, 2, nil), 0, 1)
	a := call1(t, mixed[0], callOf(coll.Bcast, 0, 2, 1, nil, make([]byte, 8)))
	b := call1(t, mixed[1], callOf(coll.Bcast, 1, 2, 1, nil, make([]byte, 16)))
	attachtest.Wait(t, a)
	_, err := b.Await(attachtest.TestContext(t))
	if step, ok := errors.AsType[*collective.StepError](err); !ok || !errors.Is(err, collective.ErrMismatch) ||
		!errors.Is(step.Err, collective.ErrMismatch) || step.Peer != 0 {
		t.Errorf("%v", err)
	}
}

// TestGoesOn checks that calls make progress while no program polls, and that a program is notified when its
// call ends.
func TestGoesOn(t *testing.T) {
	devices := engines(t, 5, nil)
	mixed := attachSome(t, devices, 0, 1, 2, 3)
	var ops []mpe.Op
	recv := make([][]byte, 5)
	refusal := make(chan struct{}, 1)
	for r := range 4 {
		recv[r] = make([]byte, 4)
		ops = append(ops, call1(t, mixed[r], callOf(coll.Allreduce, r, 5, 1, []byte{byte(1 << r), 0, 0, 0}, recv[r])))
	}
	ops[0].Notify(refusal)
	if _, ended, err := ops[0].Test(); ended || err != nil {
		t.Errorf("ended: %v, %v", ended, err)
	}
	recv[4] = make([]byte, 4)
	o := call1(t, mixed[4], callOf(coll.Allreduce, 4, 5, 1, []byte{16, 0, 0, 0}, recv[4]))
	attachtest.Wait(t, o) // no other caller waits
	o.Free()
	<-refusal
	for r, o := range ops {
		attachtest.Wait(t, o)
		if _, ended, err := o.Test(); !ended || err != nil {
			t.Errorf("ended: %v, %v", ended, err)
		}
		o.Free()
		attachtest.CheckEqual(t, "the sum", recv[r], []byte{31, 0, 0, 0})
	}
}

// TestProgramEnds checks that the calls of a program end when the program ends, and that the programs attached
// next can make their calls.
func TestProgramEnds(t *testing.T) {
	devices := engines(t, 3, nil)
	h := serveDevices(t, devices, Options{})
	for round := range 4 {
		c := h.dial(t, 0)
		all := []mpe.Device{c, h.dial(t, 1), h.dial(t, 2)}
		if round > 0 { // in round 0, it ends while the members are agreeing
			barriers(t, all, 10*round+1)
		}
		data := make([]byte, 3*wire.ChunkLen)
		ops := []mpe.Op{
			call1(t, c, callOf(coll.Barrier, 0, 3, 10*round+2, nil, nil)),
			call1(t, c, callOf(coll.Allreduce, 0, 3, 10*round+3, data, make([]byte, len(data)))),
		}
		attachtest.WaitUntil(t, "both are in progress", func() bool { return len(calls(devices[0])) == 2 })
		if round%2 == 0 {
			h.session(0).stream.HangUp() // as if the program had been killed
		} else if err := c.Close(attachtest.TestContext(t)); err != nil {
			t.Fatal(err)
		}
		for _, o := range ops {
			if _, err := o.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) {
				t.Errorf("%v", err)
			}
		}
		attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 2 })
		if list := calls(devices[0]); len(list) > 0 {
			t.Errorf("in progress: %+v", list)
		}
		for _, d := range all[1:] {
			if err := d.Close(attachtest.TestContext(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	barriers(t, []mpe.Device{h.dial(t, 0), h.dial(t, 1), h.dial(t, 2)}, 100)
}

// TestNextPrograms checks that an agreement between the members of a communicator does not outlive their
// programs: communicators of the next programs have other members, and ranks may have been restarted.
func TestNextPrograms(t *testing.T) {
	net := memnet.New(3)
	devices := make([]mpe.Device, 3)
	for r := range devices {
		devices[r] = engine(t, net, r, 3, nil)
	}
	h := serveDevices(t, devices[:1], Options{})
	first := h.dial(t, 0)
	pair := func(c *client.Client, other mpe.Device) {
		t.Helper()
		var ops []mpe.Op
		for i, d := range []mpe.Device{c, other} {
			m := callOf(coll.Barrier, i, 2, 1, nil, nil)
			m.Comm, m.Members = 7, []int{0, other.Rank()}
			ops = append(ops, call1(t, d, m))
		}
		for _, o := range ops {
			attachtest.Wait(t, o)
			o.Free()
		}
	}
	pair(first, devices[1])
	barriers(t, []mpe.Device{first, devices[1], devices[2]}, 1)
	for _, c := range []interface{ Close(context.Context) error }{first, devices[1], devices[2]} {
		if err := c.Close(attachtest.TestContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	// Messages that rank 0 sends before it receives their close are lost.
	attachtest.WaitUntil(t, "rank 0 knows that they are gone", func() bool {
		for _, p := range devices[0].(*mpe.Engine).Snapshot().Peers {
			if p.Events[state.EventClosedByPeer] == 0 {
				return false
			}
		}
		return true
	})
	for r := 1; r < 3; r++ { // rank 0 is the daemon's and keeps running
		devices[r] = engine(t, net, r, 3, func(a, b int, p *mpe.Peer) {
			p.Extended = &extended.Config{Seed: uint64(5000 + a*100 + b)}
		})
	}
	second := h.dial(t, 0)
	pair(second, devices[2]) // the same number, but with a different member
	barriers(t, []mpe.Device{second, devices[1], devices[2]}, 1)
}

// TestBuffersOfOthers checks that a call returns only defined results.
func TestBuffersOfOthers(t *testing.T) {
	mixed := attachSome(t, engines(t, 2, nil), 0, 1)
	recv := bytes.Repeat([]byte{0xee}, 8)
	var ops []mpe.Op
	for r := range 2 {
		var got []byte
		if r == 0 {
			got = recv
		}
		m := callOf(coll.Exscan, r, 2, 1, []byte{1, 0, 0, 0}, got)
		if r == 1 {
			m.Recv = make([]byte, 4)
		}
		ops = append(ops, call1(t, mixed[r], m))
	}
	for _, o := range ops {
		attachtest.Wait(t, o)
	}
	if !slices.Equal(recv, bytes.Repeat([]byte{0xee}, 8)) {
		t.Errorf("rank 0 gets %x of Exscan", recv)
	}
}
