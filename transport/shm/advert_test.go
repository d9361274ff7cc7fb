package shm

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// advertiseTo advertises a message of 100 bytes under the number id, and returns the advertised buffer as the
// reader sees it.
func advertiseTo(t *testing.T, w *writer, r *reader, id uint64) remotePayload {
	t.Helper()
	p, message := transporttest.Packet(0, 1, 1, 0), make([]byte, 100)
	if !w.advertise(&p.Header, message, id) {
		t.Fatal("there is no space")
	}
	got, a, err := r.next()
	r.release()
	if err != nil || !bytes.Equal(got, p.Header[:]) || cap(got) != len(got) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if a.isAdvertised && (a.addr != uint64(uintptr(unsafe.Pointer(&message[0]))) || a.payloadLen != 100) {
		t.Fatalf("%+v", a)
	}
	return a
}

// TestAdvert checks that an advertised buffer belongs to the side that ends it first, however late after its
// record was read.
func TestAdvert(t *testing.T) {
	w, r := newRing(MinRing)
	for _, tt := range []struct {
		name      string
		end       uint64 // argument of invalidate, called before the message is copied
		valid     bool
		confirmed bool
	}{
		{"taken", 2, true, true},
		{"reclaimed", 7, false, false},
		{"all invalidated", 0, false, false},
	} {
		a := advertiseTo(t, w, r, 7)
		for range MinRing / 64 { // overwrite its record
			p := transporttest.Packet(0, 1, 1, 100)
			if !w.put(&p.Header, p.Payload) {
				t.Fatal("there is no space")
			}
			if _, _, err := r.next(); err != nil {
				t.Fatal(err)
			}
			r.release()
		}
		w.invalidate(tt.end)
		if valid := a.isValid(); !a.isAdvertised || valid != tt.valid || a.confirmCopy() != tt.confirmed || a.confirmCopy() {
			t.Errorf("%s: %+v; it stands: %v, want %v; it is to be confirmed: %v", tt.name, a, valid, tt.valid,
				tt.confirmed)
		}
		w.invalidate(7)
	}
	if w.adverts.usedSlots != 0 {
		t.Errorf("slots %#x are taken", w.adverts.usedSlots)
	}
}

// TestAdvertSlots checks the limit on concurrent advertised buffers, and that no two of them are equal.
func TestAdvertSlots(t *testing.T) {
	w, r := newRing(MinRing)
	seen := map[uint64]bool{}
	note := func(a remotePayload, want bool) {
		t.Helper()
		if a.isAdvertised != want || seen[a.liveState] || want && !a.isValid() {
			t.Fatalf("%+v, want one that is advertised: %v", a, want)
		}
		seen[a.liveState] = a.isAdvertised
	}
	var first remotePayload
	for id := uint64(1); id <= advertSlots; id++ {
		a := advertiseTo(t, w, r, id)
		if id == 1 {
			first = a
		}
		note(a, true)
	}
	note(advertiseTo(t, w, r, 1000), false)
	if again := advertiseTo(t, w, r, 1); again.liveState != first.liveState || again.state != first.state {
		t.Errorf("announced again, it is another advertised buffer: %+v, %+v", first, again)
	}
	w.invalidate(5)
	note(advertiseTo(t, w, r, 1000), true)
	note(advertiseTo(t, w, r, 1001), false)
	w.invalidate(1)
	b := advertiseTo(t, w, r, 1)
	note(b, true)
	if b.state != first.state || first.isValid() || first.confirmCopy() || !b.confirmCopy() {
		t.Errorf("the slot's last advertised buffer is good: %+v, %+v", first, b)
	}
	w.invalidate(0)
	for id := uint64(1); id <= advertSlots; id++ {
		note(advertiseTo(t, w, r, id), true)
	}
}

// TestAdvertToAFullRing checks that a packet that does not fit in the ring does not use up a slot.
func TestAdvertToAFullRing(t *testing.T) {
	w, _ := newRing(MinRing)
	p := transporttest.Packet(0, 1, 1, 0)
	for id := uint64(1); w.advertise(&p.Header, make([]byte, 100), id); id++ {
		w.invalidate(id)
	}
	if w.adverts.usedSlots != 0 {
		t.Errorf("slots %#x are taken", w.adverts.usedSlots)
	}
}

// TestHostileAdverts checks that a record is rejected if its advertised buffer is empty, too long, or not live.
func TestHostileAdverts(t *testing.T) {
	for name, spoil := range map[string]func(*descriptor){
		"nothing":    func(l *descriptor) { l.payloadLen.Store(0) },
		"too much":   func(l *descriptor) { l.payloadLen.Store(maxSingleCopy + 1) },
		"everything": func(l *descriptor) { l.payloadLen.Store(^uint64(0)) },
		"never":      func(l *descriptor) { l.state.Store(0) },
		"taken":      func(l *descriptor) { l.state.Add(stateCopied - stateLive) },
		"over":       func(l *descriptor) { l.state.Add(stateRevoked - stateLive) },
	} {
		w, r := newRing(MinRing)
		p := transporttest.Packet(0, 1, 1, 0)
		w.advertise(&p.Header, make([]byte, 100), 1)
		spoil(descriptorAt(w.ring))
		if b, _, err := r.next(); b != nil || err == nil {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	// It may be longer than the ring.
	w, r := newRing(MinRing)
	p := transporttest.Packet(0, 1, 1, 0)
	w.advertise(&p.Header, make([]byte, maxSingleCopy), 1)
	if _, a, err := r.next(); err != nil || !a.isAdvertised || a.payloadLen != maxSingleCopy {
		t.Errorf("the most: %+v, %v", a, err)
	}
	// It may name any slot.
	for slot := range uint64(advertSlots) {
		w, r := newRing(MinRing)
		p := transporttest.Packet(0, 1, 1, 0)
		w.advertise(&p.Header, make([]byte, 100), 1)
		descriptorAt(w.ring).state.Store(^uint64(0)&^(advertSlots*statesPerAdvert-1) + slot*statesPerAdvert + stateLive)
		if _, a, err := r.next(); err != nil || a.state != slotAt(r.slots, int(slot)) || a.isValid() {
			t.Errorf("slot %d: %+v, %v", slot, a, err)
		}
	}
}
