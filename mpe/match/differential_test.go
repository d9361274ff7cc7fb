package match

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
)

// profile is a kind of random program.
type profile struct {
	name          string
	share         int // of the steps, per thousand
	depth         int // approximate depth of the queues
	sources, tags int
	wild          int // percentage of receives with a wildcard
	limits        Limits
	seeds         int
}

var profiles = []profile{
	{name: "shallow, few keys", share: 280, depth: 8, sources: 2, tags: 2, wild: 30, seeds: 6},
	{name: "shallow, many keys", share: 200, depth: 20, sources: 1 << 20, tags: math.MaxInt32, wild: 30, seeds: 5},
	{name: "shallow, one key", share: 50, depth: 12, sources: 1, tags: 1, wild: 50, seeds: 3},
	{name: "limits", share: 120, depth: 40, sources: 8, tags: 8, wild: 20, limits: Limits{Posted: 31, Unexpected: 17},
		seeds: 3},
	{name: "exact only", share: 90, depth: 60, sources: 4, tags: 64, wild: 0, seeds: 3},
	{name: "around 256, few keys", share: 60, depth: 256, sources: 3, tags: 3, wild: 10, seeds: 4},
	{name: "around 256, many keys", share: 60, depth: 262, sources: 64, tags: 1000, wild: 10, seeds: 4},
	{name: "around 256, wild", share: 30, depth: 250, sources: 16, tags: 16, wild: 70, seeds: 3},
	{name: "deep, few keys", share: 40, depth: 3000, sources: 4, tags: 4, wild: 2, seeds: 1},
	{name: "deep, many keys", share: 40, depth: 5000, sources: 500, tags: 500, wild: 5, seeds: 2},
	{name: "deep, strided", share: 30, depth: 4000, sources: 1 << 16, tags: 1, wild: 1, seeds: 2},
}

// walk is a random program on a model.
type walk struct {
	*model
	profile
	*rand.Rand
	fill  bool // the depth is increasing
	posts int  // per hundred steps
}

func (w *walk) key() (source, tag int32) {
	return int32(w.IntN(w.sources)), int32(w.IntN(w.tags))
}

// receive returns a key for a receive. If fit is set, the key matches a queued message.
func (w *walk) receive(fit bool) (source, tag int32) {
	source, tag = w.key()
	if fit && len(w.umq) > 0 {
		e := &w.umq[w.IntN(len(w.umq))]
		source, tag = e.source, e.tag
	}
	if w.IntN(100) < w.wild {
		switch w.IntN(7) {
		case 0, 1, 2:
			source = AnySource
		case 3, 4, 5:
			tag = AnyTag
		default:
			source, tag = AnySource, AnyTag
		}
	}
	return source, tag
}

// message returns a key for a message in the same way.
func (w *walk) message(fit bool) (source, tag int32) {
	source, tag = w.key()
	if !fit || len(w.prq) == 0 {
		return source, tag
	}
	e := &w.prq[w.IntN(len(w.prq))]
	if e.source != AnySource {
		source = e.source
	}
	if e.tag != AnyTag {
		tag = e.tag
	}
	return source, tag
}

func (w *walk) step() {
	depth := len(w.prq) + len(w.umq)
	switch {
	case depth == 0:
		w.fill = true
		w.posts = []int{4, 40, 76}[w.IntN(3)]
	case depth > 2*w.profile.depth:
		w.fill = false
	case w.IntN(8*w.profile.depth) == 0:
		w.fill = !w.fill
	}
	fit := w.IntN(10) < 7
	posts := w.posts
	if w.fill {
		fit = w.IntN(10) < 2
	} else {
		posts = 80 * (1 + len(w.umq)) / (2 + depth)
	}
	switch p := w.IntN(100); {
	case p < posts:
		w.post(w.receive(fit))
	case p < 80:
		w.arrive(w.message(fit))
	case p < 84:
		w.cancel(w.Int())
	case p < 88:
		w.remove(w.Int())
	case p < 92:
		s, t := w.receive(w.IntN(2) == 0)
		w.probe(s, t, false)
	case p < 95:
		s, t := w.receive(fit)
		w.probe(s, t, true)
	case p < 98:
		w.restore(w.Int())
	case p < 99:
		w.restoreBad(w.Int())
	default:
		w.stale(w.Int())
	}
}

// mismatched converts a panic of the model to an error.
func mismatched(r any, step int) error {
	switch m := r.(type) {
	case nil:
		return nil
	case mismatch:
		return fmt.Errorf("step %d: %s", step, m)
	default:
		panic(m)
	}
}

// run runs n steps, and returns the first mismatch.
func (w *walk) run(n int) (err error) {
	i := 0
	defer func() {
		err = mismatched(recover(), i)
	}()
	every := 16 + 20*w.profile.depth
	for i = range n {
		w.step()
		if i%every == 0 {
			w.compare()
		}
	}
	w.compare()
	return nil
}

// TestDifferential compares random programs with the model.
func TestDifferential(t *testing.T) {
	steps := 10_000_000
	if race.Enabled {
		steps /= 10
	}
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			matches, deepest := 0, 0
			for seed := range p.seeds {
				w := &walk{model: newModel(p.limits), profile: p, Rand: rand.New(rand.NewPCG(uint64(seed), 7))}
				if err := w.run(steps * p.share / 1000 / p.seeds); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				matches, deepest = matches+w.matches, max(deepest, w.deepest)
			}
			t.Logf("%d matches, in queues of up to %d entries", matches, deepest)
			if matches == 0 {
				t.Error("nothing matched")
			}
			if p.limits == (Limits{}) && deepest < p.depth {
				t.Errorf("the queues had %d entries at most, not %d", deepest, p.depth)
			}
		})
	}
}
