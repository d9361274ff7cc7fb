package attach

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// TestOrderOfCalls checks that, if messages match by order alone, calls do not overtake sends and sends do not
// overtake calls. Sends to other peers do not wait.
func TestOrderOfCalls(t *testing.T) {
	w := newWorld(3, 0)
	w.byOrder = 1
	h := serve(t, w, Options{})
	c := h.attach(t, 0)
	to := func(peer int, id uint64, n int) wire.Start {
		s := attachtest.SendStart(id, n)
		s.Peer = peer
		return s
	}
	bcast := func(id uint64, n int) wire.Call { c := root(id, n); c.Ranks = 3; return c }
	sent := func(rank int) (list []string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, op := range w.ranks[rank].sent {
			list = append(list, string(op.data))
		}
		return list
	}
	c.Write(attachtest.StartFrame(to(1, 1, 4), []byte("1.")))
	c.Write(callFrame(bcast(2, 4), "2222")) // waits in the queues
	c.Write(callFrame(bcast(3, 4), "33"))   // waits for its payload as well
	c.Write(attachtest.StartFrame(to(1, 4, 4), []byte("4444")))
	c.Write(attachtest.StartFrame(to(2, 5, 4), []byte("5555")))
	if d := c.ReadDone(); d.ID != 5 || d.Err != nil {
		t.Errorf("%+v", d)
	}
	c.Write(callFrame(bcast(6, 4), "6666"))
	c.Write(wire.AbortFrame(6, mpe.ErrFull))
	if d := c.ReadDone(); d.ID != 6 || !errors.Is(d.Err, mpe.ErrFull) ||
		!strings.Contains(d.Err.Error(), "earlier sends or calls have not begun") {
		t.Errorf("%+v", d)
	}
	if list := sent(1); len(list) > 0 {
		t.Errorf("sent: %q", list)
	}
	c.Write(attachtest.DataFrame(1, []byte(".1")))
	for _, id := range []uint64{1, 2} {
		if d := c.ReadDone(); d.ID != id || d.Err != nil {
			t.Errorf("%+v", d)
		}
	}
	c.Write(callFrame(bcast(7, 4), "7777"))
	c.Write(attachtest.DataFrame(3, []byte("33")))
	for _, id := range []uint64{3, 4, 7} {
		if d := c.ReadDone(); d.ID != id || d.Err != nil {
			t.Errorf("%+v", d)
		}
	}
	if list := sent(1); !slices.Equal(list, []string{"1..1", "2222", "3333", "4444", "7777"}) {
		t.Errorf("sent to rank 1: %q", list)
	}
	if list := sent(2); !slices.Equal(list, []string{"5555", "2222", "3333", "7777"}) {
		t.Errorf("sent to rank 2: %q", list)
	}
	// If its queues are empty, a call begins immediately.
	c.Write(callFrame(bcast(8, 4), "8888"))
	if d := c.ReadDone(); d.ID != 8 || d.Err != nil {
		t.Errorf("%+v", d)
	}
}
