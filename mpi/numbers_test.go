package mpi

import (
	"math"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestNumbers(t *testing.T) {
	var n numbers
	n.begin()
	if a, b := n.offer(0), n.offer(0); a != 2 || b != 4 {
		t.Fatalf("the first offers are %d and %d", a, b)
	}
	n.begin()
	if !n.claim(4) || n.claim(4) || !n.claim(2) || !n.claim(1000) {
		t.Error("a number is not claimed just once")
	}
	n.end()
	if n.claim(1000) {
		t.Error("a number was forgotten while an agreement is under way")
	}
	if got := n.offer(0); got != 1002 {
		t.Errorf("after 1000 comes %d", got)
	}
	for range 100 {
		before := n.last
		if got := n.offer(3); got%2 != 0 || got <= before || got > before+2+2*8 {
			t.Fatalf("after %d comes %d", before, got)
		}
	}
	n.end()
	if len(n.claimed) != 0 {
		t.Errorf("%d numbers are remembered for ever", len(n.claimed))
	}
	n.last = math.MaxUint32 - 5
	if got := n.offer(0); got != math.MaxUint32-3 && got != noNumber {
		t.Errorf("the last number is %d", got)
	}
	for range 3 {
		n.offer(0)
	}
	if got := n.offer(0); got != noNumber {
		t.Errorf("%d is offered beyond the last number", got)
	}
}

func TestNumbersUsedUp(t *testing.T) {
	c := newComm(t, &nullDevice{size: 1})
	c.p.numbers.last = math.MaxUint32 - 1
	if _, err := c.Dup(t.Context()); ClassOf(err) != ErrIntern {
		t.Errorf("Dup: %v", err)
	}
}

type meters float32

func TestView(t *testing.T) {
	for name, c := range map[string]struct {
		got  words
		size int
		want words
	}{
		"float32":   {view([]float32{1}), 4, words{datatype: protocol.Float}},
		"named":     {view([]meters{1, 2}), 8, words{datatype: protocol.Float}},
		"int32":     {view([]int32{1, 2, 3}), 12, words{}},
		"float64":   {view([]float64{1}), 8, words{}},
		"complex64": {view([]complex64{1}), 8, words{}},
		"uint8":     {view([]uint8{1}), 1, words{any: true}},
		"nil":       {view([]uint16(nil)), 0, words{}},
	} {
		if len(c.got.bytes) != c.size || c.got.datatype != c.want.datatype || c.got.any != c.want.any {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
	b := []uint32{0x04030201}
	if got := view(b).bytes; [4]byte(got) != [4]byte{1, 2, 3, 4} {
		t.Errorf("the bytes are %v", got)
	}
	view(b).bytes[0] = 9
	if b[0] != 0x04030209 {
		t.Error("the bytes are a copy")
	}
}

func TestAllocations(t *testing.T) {
	c := newComm(t, &nullDevice{size: 2})
	ctx := t.Context()
	b := make([]float32, 16)
	for name, f := range map[string]func() error{
		"Send":     func() error { return Send(ctx, c, b, 1, 3) },
		"Recv":     func() error { _, err := Recv(ctx, c, b, 1, 3); return err },
		"Probe":    func() error { _, err := Probe(ctx, c, 1, 3); return err },
		"Sendrecv": func() error { _, err := Sendrecv(ctx, c, b, 1, 3, b, 1, 3); return err },
	} {
		if got := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
	send, err := SendInit(c, b, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	both := []*Request{send}
	if got := testing.AllocsPerRun(100, func() {
		if err := Startall(both); err != nil {
			t.Fatal(err)
		}
		if err := Waitall(ctx, both, nil); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("a persistent send allocates %v times", got)
	}
	if got := testing.AllocsPerRun(100, func() {
		r, err := Isend(c, b, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}); got > 1 {
		t.Errorf("Isend and Wait allocate %v times, more than the request", got)
	}
}
