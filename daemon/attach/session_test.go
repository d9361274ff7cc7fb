package attach

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// TestSendsKeepTheirOrder checks that sends to the same peer are started in the order of their START frames,
// and that sends to other peers do not have to wait for them.
func TestSendsKeepTheirOrder(t *testing.T) {
	h := serve(t, newWorld(3, 0), Options{})
	c := h.attach(t, 0)
	elsewhere := attachtest.SendStart(4, 0)
	elsewhere.Peer = 2
	c.Write(attachtest.StartFrame(attachtest.SendStart(1, 4), []byte("ab")))
	c.Write(attachtest.StartFrame(attachtest.SendStart(2, 4), nil))
	c.Write(attachtest.StartFrame(attachtest.SendStart(3, 2), []byte("xy")))
	c.Write(attachtest.StartFrame(elsewhere, nil))
	if d := c.ReadDone(); d.ID != 4 || d.Err != nil {
		t.Errorf("%+v, want the send to another peer", d)
	}
	c.Write(wire.AppendID(nil, wire.FrameCancel, 2, 0))
	if d := c.ReadDone(); d.ID != 2 || !errors.Is(d.Err, mpe.ErrCancelled) {
		t.Errorf("%+v", d)
	}
	c.Write(attachtest.DataFrame(1, []byte("cd")))
	for _, id := range []uint64{1, 3} {
		if d := c.ReadDone(); d.ID != id || d.Err != nil {
			t.Errorf("%+v, want %d", d, id)
		}
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if got := h.w.ranks[1].sent; len(got) != 2 || string(got[0].data) != "abcd" || string(got[1].data) != "xy" {
		t.Errorf("%d messages", len(got))
	}
}

func TestAbortUnstarted(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.Write(attachtest.StartFrame(attachtest.SendStart(1, 4), []byte("ab")))
	c.Write(attachtest.StartFrame(attachtest.SendStart(2, 2), []byte("ab")))
	c.Write(attachtest.StartFrame(attachtest.SendStart(3, 2), []byte("ab")))
	c.Write(wire.AbortFrame(3, context.DeadlineExceeded))
	d := c.ReadDone()
	e, ok := errors.AsType[*mpe.WaitError](d.Err)
	if d.ID != 3 || !ok || e.Queued != 2 || e.Remote != 1 || !errors.Is(d.Err, context.DeadlineExceeded) ||
		!strings.Contains(d.Err.Error(), "rank 0 waits to send to rank 1: 2 of 2 bytes of payload received from the "+
			"program, and 2 sends to that rank are queued ahead: context deadline exceeded") {
		t.Errorf("%+v", d)
	}
	c.Write(wire.AbortFrame(1, context.Canceled))
	if d := c.ReadDone(); d.ID != 1 || !errors.Is(d.Err, context.Canceled) {
		t.Errorf("%+v", d)
	}
	if d := c.ReadDone(); d.ID != 2 || d.Err != nil { // it is now the first
		t.Errorf("%+v", d)
	}
}

// TestPiecesOfAReceive checks that a large message is received in several pieces, the last one together with
// DONE.
func TestPiecesOfAReceive(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	data := attachtest.Pattern(1, 2*wire.ChunkLen+5)
	attachtest.Wait(t, attachtest.Send(t, h.w.ranks[1], 0, 0, data))
	c := h.attach(t, 0)
	c.Write(attachtest.StartFrame(attachtest.RecvStart(7, 2*wire.ChunkLen+1), nil))
	var got []byte
	for range 2 {
		c.Expect(wire.FrameData)
		id, err := c.In.ReadID()
		if err != nil || id != 7 || c.In.Remaining != wire.ChunkLen {
			t.Fatalf("DATA of %d, %d bytes, %v", id, c.In.Remaining, err)
		}
		piece := make([]byte, c.In.Remaining)
		if err := c.In.Read(piece); err != nil {
			t.Fatal(err)
		}
		got = append(got, piece...)
	}
	d := c.ReadDone()
	if d.Stored != 2*wire.ChunkLen+1 || d.Status.Bytes != 2*wire.ChunkLen+5 || c.In.Remaining != 1 ||
		!errors.Is(d.Err, handshake.ErrTruncated) {
		t.Errorf("%+v, %d bytes", d, c.In.Remaining)
	}
	attachtest.CheckEqual(t, "pieces", got, data[:2*wire.ChunkLen])
}

// TestByeCancelsOperations checks that the daemon cancels operations in progress before it answers BYE.
func TestByeCancelsOperations(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.Write(attachtest.StartFrame(attachtest.RecvStart(7, 10), nil))
	c.Write(wire.AppendHeader(nil, wire.FrameBye, 0))
	c.Expect(wire.FrameBye)
	if n := h.w.openOps(0); n != 0 || len(h.server.AttachedPrograms()) != 0 {
		t.Errorf("%d operations are left, %+v", n, h.server.AttachedPrograms())
	}
}
