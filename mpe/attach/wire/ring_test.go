package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// newRing returns both sides of a ring that is n bytes long.
func newRing(n int) (*ringWriter, *ringReader) {
	r := RingOf(make([]byte, MemoryLen(n)), 0, n)
	return &ringWriter{Ring: r}, &ringReader{Ring: r}
}

// TestRing checks that data is read as it was written, in pieces of arbitrary lengths, after the positions have
// wrapped around many times.
func TestRing(t *testing.T) {
	const n = 1 << 12
	w, r := newRing(n)
	rng := rand.New(rand.NewPCG(1, 2))
	data := random(50 * n)
	var got []byte
	full, empty := 0, 0
	buf := make([]byte, 2*n)
	for sent := 0; len(got) < len(data); {
		k, _, err := w.write(data[sent:min(len(data), sent+rng.IntN(n))])
		if err != nil {
			t.Fatal(err)
		}
		if sent += k; sent-len(got) == n {
			full++
		}
		if k, _, err = r.read(buf[:rng.IntN(2*n)]); err != nil {
			t.Fatal(err)
		}
		if got = append(got, buf[:k]...); len(got) == sent {
			empty++
		}
	}
	if !bytes.Equal(got, data) {
		t.Error("the bytes differ")
	}
	if full == 0 || empty == 0 {
		t.Errorf("it was full %d times, and empty %d times", full, empty)
	}
}

// TestRingWakes checks that a sleeping side is woken up exactly once, when there is something to do.
func TestRingWakes(t *testing.T) {
	const n = 1 << 12
	w, r := newRing(n)
	if !r.requestData() {
		t.Fatal("there is something in an empty ring")
	}
	if _, wake, _ := w.write([]byte("a")); !wake {
		t.Error("a reader that sleeps is not woken")
	}
	if _, wake, _ := w.write([]byte("b")); wake {
		t.Error("a reader is woken twice")
	}
	if r.requestData() {
		t.Error("a reader sleeps that has not read all")
	}
	if _, wake, _ := w.write(make([]byte, n)); !wake || !w.requestSpace() {
		t.Error("a full ring")
	}
	buf := make([]byte, n)
	if _, err := r.available(n); err != nil {
		t.Fatal(err)
	}
	if _, wake, _ := r.read(buf[:n/4]); wake {
		t.Error("a writer is woken while little is free")
	}
	if w.requestSpace() {
		t.Error("a writer sleeps while there is space")
	}
	if _, wake, _ := r.read(buf[:n/2]); !wake {
		t.Error("a writer is not woken")
	}
	if _, wake, _ := r.read(buf); wake {
		t.Error("a writer is woken twice")
	}
}

// TestRingAwaited checks that the list of awaited operations has a limit, and that any number can be listed, except the
// last one, which counts as none.
func TestRingAwaited(t *testing.T) {
	var list Awaited
	var words []int
	for id := range uint64(awaitedWords) {
		words = append(words, list.Add(id<<32))
	}
	if list.Add(1) != -1 || list.Has(1) || !list.Has(0) || !list.Has((awaitedWords-1)<<32) {
		t.Errorf("a full list: %v", words)
	}
	list.Remove(-1)
	list.Remove(words[0])
	if list.Has(0) || !list.Has(1<<32) || list.Has(^uint64(0)) {
		t.Error("after the first one has been removed")
	}
	if word := list.Add(^uint64(0)); word != words[0] || list.Has(^uint64(0)) {
		t.Errorf("word %d", word)
	}
}

// FuzzRing checks that reads and writes stay within the bounds of the ring, no matter what values the other
// side writes to its counters.
func FuzzRing(f *testing.F) {
	f.Add(uint64(0), uint64(0), uint64(1), uint64(0))
	f.Add(uint64(1<<12), uint64(1<<12+1), ^uint64(0), uint64(1<<63))
	f.Fuzz(func(t *testing.T, a, b, c, d uint64) {
		const n = 1 << 12
		mem := bytes.Repeat([]byte{0xee}, MemoryLen(n))
		r := RingOf(mem, 0, n)
		w, in := &ringWriter{Ring: r}, &ringReader{Ring: r}
		r.Read.Store(0)
		buf := make([]byte, 2*n)
		for _, counter := range []uint64{a, b, c, d} {
			r.Written.Store(counter)
			before := in.pos
			k, _, err := in.read(buf)
			if k < 0 || k > n || in.pos-before != uint64(k) || err == nil && counter-before > n {
				t.Fatalf("%d bytes are read, of %d after %d: %v", k, counter, before, err)
			}
			r.Read.Store(counter)
			before = w.pos
			k, _, err = w.write(buf)
			if k < 0 || k > n || w.pos-before != uint64(k) ||
				err == nil && before-counter > n && k > 0 && w.lastRead == counter {
				t.Fatalf("%d bytes are written, %d were and %d read: %v", k, before, counter, err)
			}
		}
		if second := mem[countersLen+n:]; !bytes.Equal(second, bytes.Repeat([]byte{0xee}, n)) {
			t.Error("it has written to the other ring")
		}
	})
}
