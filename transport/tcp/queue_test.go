package tcp

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
)

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func TestQueueKeepsOrderAndDoesNotGrow(t *testing.T) {
	q, p := newQueue(), &peer{}
	out := make([]event, 3)
	put, got := 0, 0
	step := func() {
		for range 3 {
			q.push(event{kind: mpe.RxHeader, peer: p, from: netip.AddrPortFrom(netip.Addr{}, uint16(put))})
			put++
		}
		for _, ev := range out[:q.pop(out[:1+put%3])] {
			if ev.from.Port() != uint16(got) {
				t.Fatalf("%d came out instead of %d", ev.from.Port(), got)
			}
			got++
		}
		for put-got > 8 {
			got += q.pop(out)
		}
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations, capacity %d", n, cap(q.events))
	}
}

func TestQueueJoinsPayload(t *testing.T) {
	q, p, other := newQueue(), &peer{rank: 1}, &peer{rank: 2}
	payload := func(p *peer, b string) {
		ch := &chunk{}
		ch.len = copy(ch.buf[:], b)
		q.push(event{kind: mpe.RxPayload, peer: p, chunk: ch})
	}
	extend := func(p *peer, b string, want int) {
		t.Helper()
		if n := q.appendToTail(p, []byte(b)); n != want {
			t.Errorf("%d bytes of %d were joined on, want %d", n, len(b), want)
		}
	}
	extend(p, "nothing to join", 0)
	payload(p, "abc")
	payload(other, "xyz")
	extend(p, "def", 3)
	extend(other, "!", 1)
	q.push(event{kind: mpe.RxHeader, peer: p, chunk: &chunk{}})
	extend(p, "a header is between", 0)
	payload(p, "ghi")

	out := make([]event, 3)
	q.pop(out)
	if a, b := out[0].chunk, out[1].chunk; string(a.buf[:a.len]) != "abcdef" || string(b.buf[:b.len]) != "xyz!" {
		t.Errorf("%q and %q came out", a.buf[:a.len], b.buf[:b.len])
	}
	extend(other, "gone", 0)
	extend(p, "jkl", 3)
	extend(p, string(bytes.Repeat([]byte{1}, chunkLen)), chunkLen-6)
	extend(p, "full", 0)
	q.pop(out)
	extend(p, "gone", 0)
}

func TestQueueBoundsBroken(t *testing.T) {
	q, p := newQueue(), &peer{}
	out := make([]event, 2*maxBroken)
	for range 2 {
		for range 3 * maxBroken {
			q.pushBroken(p, netip.AddrPort{}, "")
		}
		if n := q.pop(out); n != maxBroken {
			t.Errorf("%d wait, want %d", n, maxBroken)
		}
	}
}
