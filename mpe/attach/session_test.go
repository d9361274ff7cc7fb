package attach

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestSendsKeepTheirOrder: sends to a peer are started in the order of their
// STARTs, and others go ahead.
func TestSendsKeepTheirOrder(t *testing.T) {
	h := serve(t, newWorld(3, 0), Options{})
	c := h.attach(t, 0)
	elsewhere := sendStart(4, 0)
	elsewhere.Peer = 2
	c.write(startFrame(sendStart(1, 4), []byte("ab")))
	c.write(startFrame(sendStart(2, 4), nil))
	c.write(startFrame(sendStart(3, 2), []byte("xy")))
	c.write(startFrame(elsewhere, nil))
	if d := c.done(); d.id != 4 || d.err != nil {
		t.Errorf("%+v, want the send to another peer", d)
	}
	c.write(cancelFrame(2))
	if d := c.done(); d.id != 2 || !errors.Is(d.err, mpe.ErrCancelled) {
		t.Errorf("%+v", d)
	}
	c.write(dataFrame(1, []byte("cd")))
	for _, id := range []uint64{1, 3} {
		if d := c.done(); d.id != id || d.err != nil {
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
	c.write(startFrame(sendStart(1, 4), []byte("ab")))
	c.write(startFrame(sendStart(2, 2), []byte("ab")))
	c.write(startFrame(sendStart(3, 2), []byte("ab")))
	c.write(abortFrame(3, context.DeadlineExceeded))
	d := c.done()
	e, ok := errors.AsType[*mpe.WaitError](d.err)
	if d.id != 3 || !ok || e.Queued != 2 || e.Remote != 1 || !errors.Is(d.err, context.DeadlineExceeded) ||
		!strings.Contains(d.err.Error(), "rank 0 waits to send to rank 1: 2 of 2 bytes of payload have come from the program, and 2 sends to that rank are ahead: context deadline exceeded") {
		t.Errorf("%+v", d)
	}
	c.write(abortFrame(1, context.Canceled))
	if d := c.done(); d.id != 1 || !errors.Is(d.err, context.Canceled) {
		t.Errorf("%+v", d)
	}
	if d := c.done(); d.id != 2 || d.err != nil { // it is first now
		t.Errorf("%+v", d)
	}
}

// TestPiecesOfAReceive: a large message comes in pieces, and DONE with the last.
func TestPiecesOfAReceive(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	data := pattern(1, 2*chunkLen+5)
	wait(t, send(t, h.w.ranks[1], 0, 0, data))
	c := h.attach(t, 0)
	c.write(startFrame(recvStart(7, 2*chunkLen+1), nil))
	var got []byte
	for range 2 {
		c.expect(frameData)
		id, err := c.in.readID()
		if err != nil || id != 7 || c.in.left != chunkLen {
			t.Fatalf("DATA of %d, %d bytes, %v", id, c.in.left, err)
		}
		piece := make([]byte, c.in.left)
		if err := c.in.read(piece); err != nil {
			t.Fatal(err)
		}
		got = append(got, piece...)
	}
	d := c.done()
	if d.stored != 2*chunkLen+1 || d.status.Bytes != 2*chunkLen+5 || c.in.left != 1 || !errors.Is(d.err, handshake.ErrTruncated) {
		t.Errorf("%+v, %d bytes", d, c.in.left)
	}
	same(t, "pieces", got, data[:2*chunkLen])
}

// TestBye: what is under way is canceled before the daemon answers.
func TestBye(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.write(startFrame(recvStart(7, 10), nil))
	c.write(appendHeader(nil, frameBye, 0))
	c.expect(frameBye)
	if n := h.w.openOps(0); n != 0 || len(h.server.Attached()) != 0 {
		t.Errorf("%d operations are left, %+v", n, h.server.Attached())
	}
}
