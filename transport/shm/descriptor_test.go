package shm

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// exposeTo exposes a packet under the number id, and returns its payload as the reader sees it.
func exposeTo(t *testing.T, w *writer, r *reader, id uint64) remotePayload {
	t.Helper()
	p := transporttest.Packet(0, 1, 1, 100)
	if !w.expose(&p.Header, p.Payload, id) {
		t.Fatal("there is no space")
	}
	got, a, err := r.next()
	if err != nil || !bytes.Equal(got, p.Header[:]) || cap(got) != len(got) || a.state == nil ||
		a.addr != uint64(uintptr(unsafe.Pointer(&p.Payload[0]))) || a.payloadLen != 100 {
		t.Fatalf("%d bytes, %+v, %v", len(got), a, err)
	}
	return a
}

// TestDescriptor checks that a descriptor belongs to the side that ends it first.
func TestDescriptor(t *testing.T) {
	w, r := newRing(MinRing)
	for _, tt := range []struct {
		name      string
		end       uint64 // argument of invalidate, called before the payload is copied
		before    bool   // isValid is called before that
		valid     bool
		confirmed bool
	}{
		{"taken", 2, false, true, true},
		{"reclaimed", 7, false, false, false},
		{"invalidated meanwhile", 7, true, true, false},
		{"all invalidated", 0, false, false, false},
	} {
		a := exposeTo(t, w, r, 7)
		valid := false
		if tt.before {
			valid = a.isValid()
		}
		w.invalidate(tt.end)
		if !tt.before {
			valid = a.isValid()
		}
		if valid != tt.valid || a.confirmCopy() != tt.confirmed || a.confirmCopy() {
			t.Errorf("%s: it stands: %v, want %v; it is to be confirmed: %v", tt.name, valid, tt.valid, tt.confirmed)
		}
	}
	if w.invalidate(2); len(w.exposed) != 0 {
		t.Errorf("%d descriptors are remembered", len(w.exposed))
	}
}

// TestDescriptorsAreForgotten checks that the writer tracks a descriptor exactly as long as it can be read, and
// does not change a later record in the same place.
func TestDescriptorsAreForgotten(t *testing.T) {
	w, r := newRing(MinRing)
	first := exposeTo(t, w, r, 1)
	second := exposeTo(t, w, r, 2)
	if w.invalidate(2); len(w.exposed) != 2 || !first.isValid() || second.isValid() {
		t.Errorf("%d descriptors, %v, %v", len(w.exposed), first.isValid(), second.isValid())
	}
	p := transporttest.Packet(0, 1, 1, 1000)
	for range MinRing {
		if w.pos >= MinRing {
			break
		}
		if !w.put(&p.Header, p.Payload) {
			t.Fatal("there is no space")
		}
		if _, _, err := r.next(); err != nil {
			t.Fatal(err)
		}
		r.release()
	}
	if first.isValid() {
		t.Error("an overwritten record is reported as valid")
	}
	content := bytes.Clone(w.ring)
	if w.invalidate(0); len(w.exposed) != 0 || !bytes.Equal(content, w.ring) {
		t.Errorf("%d descriptors are remembered", len(w.exposed))
	}
}

// TestHostileDescriptors checks that a descriptor that is empty or too long is rejected.
func TestHostileDescriptors(t *testing.T) {
	for _, payload := range []uint64{0, MinRing/4 + 1, 1 << 40, ^uint64(0)} {
		w, r := newRing(MinRing)
		p := transporttest.Packet(0, 1, 1, 100)
		w.expose(&p.Header, p.Payload, 1)
		descriptorAt(w.ring).payloadLen.Store(payload)
		if b, _, err := r.next(); b != nil || err == nil {
			t.Errorf("%d bytes of payload are away: %d bytes, %v", payload, len(b), err)
		}
	}
}

// TestLongPayloadFits checks that exposed payload also fits in the ring, at any position, in case it has to be
// copied.
func TestLongPayloadFits(t *testing.T) {
	for ring := MinRing; ring <= MaxRing; ring *= 2 {
		if record := recordLen(protocol.ExtHeaderLen + LongPayload(ring)); 2*record+recordAlign > ring {
			t.Errorf("a record of %d bytes does not fit into a ring of %d", record, ring)
		}
	}
}
