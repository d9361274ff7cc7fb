package core

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
)

// expected returns the placement for rank 1 that is set at the end of the current event, and resets it.
func expected(e *Core) (r *Request, at Placement, moved bool) {
	l := &e.peers.at(1).placement
	r, at, moved = l.next.req, l.next.at, l.changed
	l.next.req, l.next.at, l.changed = nil, Placement{}, false
	e.pending.placements = e.pending.placements[:0]
	return r, at, moved
}

// TestPlaceExtended checks that the rest of a message is placed if it is long, arrives in order, and has a receive
// whose buffer can hold it.
func TestPlaceExtended(t *testing.T) {
	const got = 1000
	for _, tt := range []struct {
		name     string
		bytes    int64
		buf      int
		unstored int64
		payload  int // of packets
		detached bool
		own      bool
		placed   int
	}{
		{name: "long", bytes: got + 2*minPlacement, buf: got + 2*minPlacement, placed: 2 * minPlacement},
		{name: "just long enough", bytes: got + minPlacement, buf: got + 2*minPlacement, placed: minPlacement},
		{name: "a byte short", bytes: got + minPlacement - 1, buf: got + 2*minPlacement},
		{name: "the buffer is just long enough", bytes: got + 2*minPlacement, buf: got + minPlacement,
			placed: minPlacement},
		{name: "the buffer is a byte short", bytes: got + 2*minPlacement, buf: got + minPlacement - 1},
		{name: "a gap", bytes: got + minPlacement, buf: got + minPlacement, unstored: 1},
		{name: "no receive", bytes: got + minPlacement, buf: got + minPlacement, detached: true},
		{name: "memory of the engine", bytes: got + minPlacement, buf: got + minPlacement, own: true},
		{name: "packets just long enough", bytes: got + minPlacement, buf: got + minPlacement,
			payload: minPlacement, placed: minPlacement},
		{name: "packets a byte short", bytes: got + minPlacement, buf: got + minPlacement, payload: minPlacement - 1},
	} {
		payload := tt.payload
		if payload == 0 {
			payload = 2 * minPlacement
		}
		w := newCores(t, 1, 2, faults{places: true}, func(_, _ int) Peer {
			return Peer{Extended: &extended.Config{MaxPayload: min(payload, 60000)}}
		})
		e := w.cores[0]
		l := e.peers.at(1).extended
		if places := payload >= minPlacement; l.p.canPlace != places {
			t.Errorf("%s: packets are placed: %v", tt.name, l.p.canPlace)
		}
		in := &inbound{bytes: tt.bytes, buf: make([]byte, tt.buf), ownsBuf: tt.own, highWater: got,
			storedBytes: got - tt.unstored}
		if !tt.detached {
			in.recv = new(Request)
		}
		l.placeRest(in)
		r, at, _ := expected(e)
		if len(at.Buf) != tt.placed || tt.placed > 0 && (r != in.recv || at.Offset != got ||
			&at.Buf[0] != &in.buf[got]) {
			t.Errorf("%s: %d bytes at %d of receive %p are placed, not %d", tt.name, len(at.Buf), at.Offset, r,
				tt.placed)
		}
	}
}

// TestPlaceHandshake checks that the rest of a DATA message is placed if it is long, and has a receive whose buffer
// can hold it.
func TestPlaceHandshake(t *testing.T) {
	const bytes = 4 * minPlacement
	w := newCores(t, 1, 2, faults{places: true}, software)
	e, buf := w.cores[0], make([]byte, bytes)
	recv := w.start(t, 0, Operation{Kind: OpRecv, Peer: 1, Buf: buf})
	w.start(t, 1, Operation{Kind: OpSend, Peer: 0, Buf: make([]byte, bytes)})
	l := e.peers.at(1).handshake
	offset := int64(0)
	for offset == 0 {
		if !w.step() {
			t.Fatal("no DATA arrives")
		}
		offset, _, _ = l.pair.ExpectedPayload()
	}
	expected(e)
	for _, tt := range []struct {
		name     string
		buf      int64 // after the bytes received so far
		detached bool
		placed   int64
	}{
		{name: "all", buf: bytes - offset, placed: bytes - offset},
		{name: "just long enough", buf: minPlacement, placed: minPlacement},
		{name: "a word short", buf: minPlacement - 4},
		{name: "detached", buf: bytes - offset, detached: true},
	} {
		recv.buf, recv.detached = buf[:offset+tt.buf], tt.detached
		l.placeRest()
		r, at, _ := expected(e)
		if int64(len(at.Buf)) != tt.placed || tt.placed > 0 && (r != recv || &at.Buf[0] != &buf[offset]) {
			t.Errorf("%s: %d bytes of receive %p are placed, not %d", tt.name, len(at.Buf), r, tt.placed)
		}
	}
}

// TestPlacements checks that a placement changes at the end of an event, and that the end of a receive revokes its
// own placement only.
func TestPlacements(t *testing.T) {
	var placed []Placement
	revoked := 0
	w := newCores(t, 1, 2, faults{places: true}, extendedPeer)
	w.ports[0].place = func(at Placement) { placed = append(placed, at) }
	w.ports[0].revoke = func(int) { revoked++ }
	e := w.cores[0]
	p := e.peers.at(1)
	first, second := &Request{buf: make([]byte, 8)}, &Request{buf: make([]byte, 16)}
	check := func(what string, bytes []int, revokes int) {
		t.Helper()
		movePlacements(e)
		same := len(placed) == len(bytes) && revoked == revokes
		for i := range min(len(bytes), len(placed)) {
			same = same && len(placed[i].Buf) == bytes[i] && placed[i].Peer == 1
		}
		if !same {
			t.Errorf("%s: %v was placed, not %v bytes, and %d were revoked, not %d", what, placed, bytes, revoked,
				revokes)
		}
		placed, revoked = nil, 0
	}
	p.clearPlacement()
	check("nothing, and nothing was before", nil, 0)
	p.setPlacement(first, Placement{Buf: first.buf})
	p.clearPlacement()
	check("nothing any more", nil, 0)
	p.setPlacement(first, Placement{Buf: first.buf})
	p.setPlacement(second, Placement{Buf: second.buf})
	check("the last of two", []int{16}, 0)
	revokePlacement(first)
	check("another receive ends", nil, 0)
	p.clearPlacement()
	check("nothing after something", []int{0}, 0)
	p.setPlacement(second, Placement{Buf: second.buf})
	check("again", []int{16}, 0)
	p.setPlacement(second, Placement{Buf: second.buf[:4]})
	revokePlacement(second)
	check("its receive ends in the event", nil, 1)
	revokePlacement(second)
	check("it is done", nil, 0)
}
