package mpi

import (
	"math"
	"testing"
)

func TestNumbers(t *testing.T) {
	var n numbers
	n.begin()
	if a, b := n.propose(0), n.propose(0); a != 4 || b != 8 {
		t.Fatalf("the first proposals are %d and %d", a, b)
	}
	n.begin()
	if !n.claim(8) || n.claim(8) || !n.claim(4) || !n.claim(1000) {
		t.Error("a number is not claimed just once")
	}
	n.end()
	if n.claim(1000) {
		t.Error("a number was forgotten while an agreement was in progress")
	}
	if got := n.propose(0); got != 1004 {
		t.Errorf("after 1000 comes %d", got)
	}
	for range 100 {
		before := n.highest
		if got := n.propose(3); got%4 != 0 || got <= before || got > before+4+4*8 {
			t.Fatalf("after %d comes %d", before, got)
		}
	}
	n.end()
	if len(n.claimed) != 0 {
		t.Errorf("%d numbers are kept forever", len(n.claimed))
	}
	n.highest = firstUnique - 8
	if got := n.propose(0); got != firstUnique-4 {
		t.Errorf("the last number is %d", got)
	}
	for range 3 {
		n.propose(0)
	}
	if got := n.propose(0); got != noNumber {
		t.Errorf("%d is proposed beyond the last number", got)
	}
}

// TestNumbersAlone checks that the ranks together propose every fourth number exactly once.
func TestNumbersAlone(t *testing.T) {
	const size = 3
	var ranks [size]numbers
	for i := range 10 {
		for r := range size {
			if got, want := ranks[r].proposeUnique(r, size), uint32(firstUnique+4*(i*size+r)); got != want {
				t.Fatalf("rank %d proposes %d, not %d", r, got, want)
			}
		}
	}
	last := numbers{uniqueProposals: (noNumber - 7 - firstUnique) / 4}
	// The highest numbers belong to devices.
	if got := last.proposeUnique(0, 1); got != noNumber-7 || got|channelDataOffset >= math.MaxUint32-2 {
		t.Errorf("the last number is %d", got)
	}
	if got := last.proposeUnique(0, 1); got != noNumber {
		t.Errorf("%d is proposed beyond the last number", got)
	}
}

// TestHostColor checks that a different kernel or name means a different host.
func TestHostColor(t *testing.T) {
	a := hostColor([]byte("1"), "a")
	if a < 0 || a != hostColor([]byte("1"), "a") || a == hostColor([]byte("2"), "a") ||
		a == hostColor([]byte("1"), "b") {
		t.Errorf("%d, %d, %d", a, hostColor([]byte("2"), "a"), hostColor([]byte("1"), "b"))
	}
}

func TestNumbersUsedUp(t *testing.T) {
	c := newComm(t, &nullDevice{size: 1})
	c.proc.numbers.highest = math.MaxUint32 - 1
	if _, err := c.Dup(t.Context()); ClassOf(err) != ErrIntern {
		t.Errorf("Dup: %v", err)
	}
	c.proc.numbers.uniqueProposals = 1 << 40
	if got := c.proc.numbers.proposeUnique(0, 1); got != noNumber {
		t.Errorf("%d is proposed", got)
	}
}
