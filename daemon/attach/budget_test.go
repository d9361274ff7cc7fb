package attach

import (
	"errors"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

func TestBudgetOfBytes(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{Limits: wire.Limits{Operations: 10, Bytes: 1 << 20}})
	a, b := h.dial(t, 0), h.dial(t, 1)
	full := attachtest.Recv(t, b, 0, 1, make([]byte, 1<<20-4))
	if _, err := attachtest.Recv(t, b, 0, 2, make([]byte, 5)).Await(attachtest.TestContext(t)); !errors.Is(err,
		mpe.ErrFull) {
		t.Errorf("a receive beyond the budget: %v", err)
	}
	if _, err := attachtest.Send(t, b, 0, 2, make([]byte, 5)).Await(attachtest.TestContext(t)); !errors.Is(err,
		mpe.ErrFull) {
		t.Errorf("a send beyond the budget: %v", err)
	}
	// An operation that can never fit fails with a different error. The program may send all of its payload.
	for range 3 {
		if _, err := attachtest.Send(t, b, 0, 2, make([]byte, 1<<20+1)).Await(attachtest.TestContext(t)); !errors.Is(err,
			handshake.ErrTooLong) || errors.Is(err, mpe.ErrFull) {
			t.Errorf("a send larger than the budget: %v", err)
		}
	}
	if at := h.server.AttachedPrograms()[1]; at.Rank != 1 || at.Operations != 1 || at.Bytes != 1<<20-4 {
		t.Errorf("%+v", at)
	}
	// Completed operations release their share. Operations beyond the budget do not block operations within it.
	attachtest.Wait(t, attachtest.Send(t, b, 0, 3, make([]byte, 4)))
	attachtest.Wait(t, attachtest.Send(t, a, 1, 1, make([]byte, 1<<20-4)))
	attachtest.Wait(t, full)
	if at := h.server.AttachedPrograms()[1]; at.Operations != 0 || at.Bytes != 0 {
		t.Errorf("%+v", at)
	}
	attachtest.Wait(t, attachtest.Send(t, b, 0, 3, make([]byte, 1<<20)))
}

func TestBudgetOfOperations(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: wire.Limits{Operations: 3, Bytes: 1 << 20}})
	c := h.dial(t, 0)
	ops := []mpe.Op{attachtest.Recv(t, c, 1, 0, nil), attachtest.Recv(t, c, 1, 0, nil),
		attachtest.Recv(t, c, 1, 0, nil)}
	if _, err := c.Start(mpe.Operation{Kind: mpe.OpRecv}); !errors.Is(err, mpe.ErrFull) {
		t.Errorf("a receive: %v", err)
	}
	if _, _, err := c.Probe(attachtest.TestContext(t), mpe.Match{}, false); !errors.Is(err, mpe.ErrFull) {
		t.Errorf("a probe: %v", err)
	}
	ops[1].Cancel()
	if _, err := ops[1].Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrCancelled) {
		t.Error(err)
	}
	attachtest.Wait(t, attachtest.Send(t, c, 1, 0, nil))
}

func TestBudgetOfProbes(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	for id := range uint64(maxProbes + 1) {
		c.Write(wire.AppendProbe(nil, &wire.Start{ID: id, Operation: mpe.Operation{Peer: 1}, Wait: true}))
	}
	if d := c.ReadDone(); d.ID != maxProbes || !errors.Is(d.Err, mpe.ErrFull) {
		t.Errorf("%+v", d)
	}
	c.Write(wire.AppendID(nil, wire.FrameCancel, 5, 0))
	if d := c.ReadDone(); d.ID != 5 || !errors.Is(d.Err, mpe.ErrCancelled) {
		t.Errorf("%+v", d)
	}
	c.Write(wire.AppendProbe(nil, &wire.Start{ID: 5, Operation: mpe.Operation{Peer: 1}, Wait: true}))
	c.Write(wire.AppendID(nil, wire.FrameCancel, 5, 0))
	if d := c.ReadDone(); d.ID != 5 || !errors.Is(d.Err, mpe.ErrCancelled) {
		t.Errorf("%+v", d)
	}
}
