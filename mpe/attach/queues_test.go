package attach

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestOrderOfCalls: where messages match by order alone, a call neither overtakes a
// send nor is overtaken by one. Other sends do not wait.
func TestOrderOfCalls(t *testing.T) {
	w := newWorld(3, 0)
	w.byOrder = 1
	h := serve(t, w, Options{})
	c := h.attach(t, 0)
	to := func(peer int, id uint64, n int) start {
		s := sendStart(id, n)
		s.Peer = peer
		return s
	}
	bcast := func(id uint64, n int) call { c := root(id, n); c.ranks = 3; return c }
	sent := func(rank int) (list []string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, op := range w.ranks[rank].sent {
			list = append(list, string(op.data))
		}
		return list
	}
	c.write(startFrame(to(1, 1, 4), []byte("1.")))
	c.write(callFrame(bcast(2, 4), "2222")) // waits in the queue
	c.write(callFrame(bcast(3, 4), "33"))   // and for its payload
	c.write(startFrame(to(1, 4, 4), []byte("4444")))
	c.write(startFrame(to(2, 5, 4), []byte("5555")))
	if d := c.done(); d.id != 5 || d.err != nil {
		t.Errorf("%+v", d)
	}
	c.write(callFrame(bcast(6, 4), "6666"))
	c.write(abortFrame(6, mpe.ErrFull))
	if d := c.done(); d.id != 6 || !errors.Is(d.err, mpe.ErrFull) || !strings.Contains(d.err.Error(), "sends or calls that were posted before it have not begun") {
		t.Errorf("%+v", d)
	}
	if list := sent(1); len(list) > 0 {
		t.Errorf("sent: %q", list)
	}
	c.write(dataFrame(1, []byte(".1")))
	for _, id := range []uint64{1, 2} {
		if d := c.done(); d.id != id || d.err != nil {
			t.Errorf("%+v", d)
		}
	}
	c.write(callFrame(bcast(7, 4), "7777"))
	c.write(dataFrame(3, []byte("33")))
	for _, id := range []uint64{3, 4, 7} {
		if d := c.done(); d.id != id || d.err != nil {
			t.Errorf("%+v", d)
		}
	}
	if list := sent(1); !slices.Equal(list, []string{"1..1", "2222", "3333", "4444", "7777"}) {
		t.Errorf("sent to rank 1: %q", list)
	}
	if list := sent(2); !slices.Equal(list, []string{"5555", "2222", "3333", "7777"}) {
		t.Errorf("sent to rank 2: %q", list)
	}
	// With nobody before it, a call begins at once.
	c.write(callFrame(bcast(8, 4), "8888"))
	if d := c.done(); d.id != 8 || d.err != nil {
		t.Errorf("%+v", d)
	}
}
