package shm

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/internal/testkit/transporttest"
)

// offerTo offers a message of 100 bytes under a number, and returns what the reader
// sees of it.
func offerTo(t *testing.T, w *writer, r *reader, id uint64) away {
	t.Helper()
	p, message := transporttest.Packet(0, 1, 1, 0), make([]byte, 100)
	if !w.offer(&p.Header, message, id) {
		t.Fatal("there is no room")
	}
	got, a, err := r.next()
	r.release()
	if err != nil || !bytes.Equal(got, p.Header[:]) || cap(got) != len(got) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if a.offered && (a.addr != uint64(uintptr(unsafe.Pointer(&message[0]))) || a.payload != 100) {
		t.Fatalf("%+v", a)
	}
	return a
}

// An offer is good for whoever ends it first, however long after its record was read.
func TestOffer(t *testing.T) {
	w, r := newRing(MinRing)
	for _, tt := range []struct {
		name    string
		end     uint64 // reclaim is called with that before the message is copied
		stands  bool
		settled bool
	}{
		{"taken", 2, true, true},
		{"reclaimed", 7, false, false},
		{"all reclaimed", 0, false, false},
	} {
		a := offerTo(t, w, r, 7)
		for range MinRing / 64 { // its record is written over
			p := transporttest.Packet(0, 1, 1, 100)
			if !w.put(&p.Header, p.Payload) {
				t.Fatal("there is no room")
			}
			if _, _, err := r.next(); err != nil {
				t.Fatal(err)
			}
			r.release()
		}
		w.reclaim(tt.end)
		if stands := a.stands(); !a.offered || stands != tt.stands || a.settle() != tt.settled || a.settle() {
			t.Errorf("%s: %+v; it stands: %v, want %v; it is to be settled: %v", tt.name, a, stands, tt.stands, tt.settled)
		}
		w.reclaim(7)
	}
	if w.offers.used != 0 {
		t.Errorf("slots %#x are taken", w.offers.used)
	}
}

// There are so many offers at a time, and no two are the same.
func TestOfferSlots(t *testing.T) {
	w, r := newRing(MinRing)
	seen := map[uint64]bool{}
	note := func(a away, want bool) {
		t.Helper()
		if a.offered != want || seen[a.good] || want && !a.stands() {
			t.Fatalf("%+v, want an offer: %v", a, want)
		}
		seen[a.good] = a.offered
	}
	var first away
	for id := uint64(1); id <= offerSlots; id++ {
		a := offerTo(t, w, r, id)
		if id == 1 {
			first = a
		}
		note(a, true)
	}
	note(offerTo(t, w, r, 1000), false)
	if again := offerTo(t, w, r, 1); again.good != first.good || again.state != first.state {
		t.Errorf("announced again, it is another offer: %+v, %+v", first, again)
	}
	w.reclaim(5)
	note(offerTo(t, w, r, 1000), true)
	note(offerTo(t, w, r, 1001), false)
	w.reclaim(1)
	b := offerTo(t, w, r, 1)
	note(b, true)
	if b.state != first.state || first.stands() || first.settle() || !b.settle() {
		t.Errorf("the slot's last offer is good: %+v, %+v", first, b)
	}
	w.reclaim(0)
	for id := uint64(1); id <= offerSlots; id++ {
		note(offerTo(t, w, r, id), true)
	}
}

// What there is no room for takes no slot.
func TestOfferToAFullRing(t *testing.T) {
	w, _ := newRing(MinRing)
	p := transporttest.Packet(0, 1, 1, 0)
	for id := uint64(1); w.offer(&p.Header, make([]byte, 100), id); id++ {
		w.reclaim(id)
	}
	if w.offers.used != 0 {
		t.Errorf("slots %#x are taken", w.offers.used)
	}
}

// An offer of nothing, or of more than may be, or that says of itself that it is over,
// is no offer.
func TestHostileOffers(t *testing.T) {
	for name, spoil := range map[string]func(*loan){
		"nothing":    func(l *loan) { l.payload.Store(0) },
		"too much":   func(l *loan) { l.payload.Store(maxSingleCopy + 1) },
		"everything": func(l *loan) { l.payload.Store(^uint64(0)) },
		"never":      func(l *loan) { l.state.Store(0) },
		"taken":      func(l *loan) { l.state.Add(taken - live) },
		"over":       func(l *loan) { l.state.Add(over - live) },
	} {
		w, r := newRing(MinRing)
		p := transporttest.Packet(0, 1, 1, 0)
		w.offer(&p.Header, make([]byte, 100), 1)
		spoil(loanAt(w.ring))
		if b, _, err := r.next(); b != nil || err == nil {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	// It need not fit into the ring.
	w, r := newRing(MinRing)
	p := transporttest.Packet(0, 1, 1, 0)
	w.offer(&p.Header, make([]byte, maxSingleCopy), 1)
	if _, a, err := r.next(); err != nil || !a.offered || a.payload != maxSingleCopy {
		t.Errorf("the most: %+v, %v", a, err)
	}
	// Whatever slot it names is one.
	for slot := range uint64(offerSlots) {
		w, r := newRing(MinRing)
		p := transporttest.Packet(0, 1, 1, 0)
		w.offer(&p.Header, make([]byte, 100), 1)
		loanAt(w.ring).state.Store(^uint64(0)&^(offerSlots*states-1) + slot*states + live)
		if _, a, err := r.next(); err != nil || a.state != slotAt(r.slots, int(slot)) || a.stands() {
			t.Errorf("slot %d: %+v, %v", slot, a, err)
		}
	}
}
