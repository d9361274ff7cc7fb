package attach

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestArena checks that blocks have the requested length, do not overlap and are placed as low as possible, and
// that the arena is a single free span again after all blocks have been freed.
func TestArena(t *testing.T) {
	const blocks = 64
	var a arena
	a.init(make([]byte, blocks*arenaBlock+1))
	r := rand.New(rand.NewPCG(1, 2))
	var used [blocks]bool
	var taken []span
	set := func(b span, to bool) {
		for i := b.offset / arenaBlock; i < b.end()/arenaBlock; i++ {
			if used[i] == to {
				t.Fatalf("%v is taken or given back twice", b)
			}
			used[i] = to
		}
	}
	for range 20_000 {
		if r.IntN(2) == 0 && len(taken) > 0 {
			i := r.IntN(len(taken))
			set(taken[i], false)
			a.release(taken[i])
			taken = slices.Delete(taken, i, i+1)
			continue
		}
		n := 1 + r.IntN(10*arenaBlock)
		want, whole := -1, (n+arenaBlock-1)/arenaBlock
		for i, run := 0, 0; i < blocks && want < 0; i++ {
			if run++; used[i] {
				run = 0
			}
			if run == whole {
				want = (i - whole + 1) * arenaBlock
			}
		}
		b := a.alloc(n)
		if want < 0 && b.length != 0 || want >= 0 && (b.offset != want || b.length != whole*arenaBlock) {
			t.Fatalf("%d bytes are at %v, want %d", n, b, want)
		}
		if b.length > 0 {
			set(b, true)
			taken = append(taken, b)
		}
	}
	for _, b := range taken {
		a.release(b)
	}
	a.release(span{})
	if !slices.Equal(a.freeSpans, []span{{0, blocks * arenaBlock}}) {
		t.Errorf("free: %v", a.freeSpans)
	}
	a.close()
	a.write(span{0, arenaBlock}, []byte("late")) // must not write anything
	var none arena
	none.init(nil)
	if b := none.alloc(1); b.length != 0 {
		t.Errorf("%v of no arena", b)
	}
}
