package match

import (
	"fmt"
	"math"
	"testing"
)

func TestNoAllocation(t *testing.T) {
	for _, l := range loads {
		for _, depth := range []int{0, 256, 1000, 20000} {
			t.Run(fmt.Sprintf("%s at %d", l.name, depth), func(t *testing.T) {
				step, length := l.setup(depth)
				for range depth + 8 {
					step()
				}
				if n := testing.AllocsPerRun(2000, step); n != 0 {
					t.Errorf("%v allocations for an operation", n)
				}
				if length() != depth+l.own {
					t.Errorf("the depth is %d, not %d: the benchmark measures something else", length(), depth+l.own)
				}
			})
		}
	}
}

// TestNoAllocationAtTheLimit checks that a flood at the limit does not allocate.
func TestNoAllocationAtTheLimit(t *testing.T) {
	m := New[int, int](Limits{Posted: 1, Unexpected: 1})
	m.Post(1, 1, 0)
	m.Arrive(2, 2, 0)
	if n := testing.AllocsPerRun(1000, func() {
		m.Post(1, 1, 0)
		m.Arrive(2, 2, 0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if m.Posted() != 1 || m.Unexpected() != 1 {
		t.Errorf("%d posted, %d unexpected", m.Posted(), m.Unexpected())
	}
}

// TestNothingKept checks that removed receives and messages are not retained.
func TestNothingKept(t *testing.T) {
	m := New[*int, *int](Limits{})
	const n = 700
	var hs [n]Handle
	for i := range n {
		_, _, hs[i], _ = m.Post(int32(i), 1, new(int))
		m.Arrive(int32(i), 2, new(int))
	}
	for i := range n {
		switch i % 3 {
		case 0:
			m.CancelPosted(hs[i])
			m.Claim(int32(i), 2)
		default:
			m.Arrive(int32(i), 1, new(int))
			m.Post(int32(i), 2, new(int))
		}
	}
	if m.Posted() != 0 || m.Unexpected() != 0 {
		t.Fatalf("%d posted, %d unexpected", m.Posted(), m.Unexpected())
	}
	for i := range uint32(n + 1) {
		if *m.receives.slot(i) != nil || *m.messages.slot(i) != nil {
			t.Fatalf("entry %d still holds something", i)
		}
	}
}

// TestMemoryIsReused fills and empties the queues repeatedly.
func TestMemoryIsReused(t *testing.T) {
	m := New[int, int](Limits{})
	round := func() {
		for i := range int32(5000) {
			m.Post(i, i, 0)
			m.Arrive(i, i+1, 0)
		}
		for i := range int32(5000) {
			m.Arrive(i, i, 0)
			m.Claim(AnySource, AnyTag)
		}
	}
	if n := testing.AllocsPerRun(5, round); n != 0 {
		t.Errorf("%v allocations in a round", n)
	}
	if m.prq.lastIndex != 5000 || m.Posted() != 0 {
		t.Errorf("%d entries for a depth of 5000, %d left", m.prq.lastIndex, m.Posted())
	}
}

// TestHash counts how many keys of simple patterns collide in the bits of the hash that choose a bucket, and in the
// bits that form tags. A random function has n²/2m colliding pairs.
func TestHash(t *testing.T) {
	patterns := map[string]func(i int32) pair{
		"tags count up":         func(i int32) pair { return pair{0, i} },
		"sources count up":      func(i int32) pair { return pair{i, 0} },
		"source is tag":         func(i int32) pair { return pair{i, i} },
		"grid":                  func(i int32) pair { return pair{i & 63, i >> 6} },
		"grid, other way":       func(i int32) pair { return pair{i >> 6, i & 63} },
		"any tag":               func(i int32) pair { return pair{i, AnyTag} },
		"any source":            func(i int32) pair { return pair{AnySource, i} },
		"sources by 64":         func(i int32) pair { return pair{i * 64, 3} },
		"sources by 4096":       func(i int32) pair { return pair{i * 4096, 3} },
		"tags by 256":           func(i int32) pair { return pair{5, i * 256} },
		"tags by 65536":         func(i int32) pair { return pair{5, i << 16} },
		"tags by 1000":          func(i int32) pair { return pair{5, i * 1000} },
		"tags from the top":     func(i int32) pair { return pair{1, math.MaxInt32 - i} },
		"source + tag constant": func(i int32) pair { return pair{i, 1<<20 - i} },
		"blocks of tags":        func(i int32) pair { return pair{i & 7, i>>3<<12 | i&7} },
	}
	for name, pattern := range patterns {
		for _, n := range []int{256, 8192, 32768} {
			m := 2 * n
			low, upper := make([]int, m), make([]int, m)
			for i := range n {
				k := pattern(int32(i))
				h := hash(makeKey(k.source, k.tag))
				low[h&uint64(m-1)]++
				upper[h>>40&uint64(m-1)]++
			}
			for bits, counts := range map[string][]int{"low": low, "upper": upper} {
				pairs, most := 0, 0
				for _, c := range counts {
					pairs += c * (c - 1) / 2
					most = max(most, c)
				}
				if random := n / 4; pairs > 3*random/2+20 || most > 9 {
					t.Errorf("%s, %d keys, %s bits: %d pairs have them in common (a random function: %d), %d "+
						"keys at most",
						name, n, bits, pairs, random, most)
				}
			}
		}
	}
}
