package collective

import (
	"fmt"
	"math"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Ranks of different versions may have different tables built in: then they go by what can
// carry out every call.
func TestVersionsDisagree(t *testing.T) {
	flat := []choice.Span{{UpTo: math.MaxInt, By: []choice.Choice{{Algorithm: "flat"}}}}
	w := newWorld(3, nil)
	(*w)[2].calls.builtIn = choice.New(choice.Rows{}, choice.Rows{Rows: []choice.Row{{Collective: coll.Bcast, Ranks: 2, Spans: flat}}})
	w.bcast(t, 1, 0, 10)
	w.bcast(t, 2, 1, 100_000)
	for rank, f := range *w {
		counts := f.calls.Counts()
		last := counts[len(counts)-1]
		if f.calls.Disagreements() != 1 || last.Collective != "Bcast" || last.Algorithm != "binomial" || last.Calls != 2 {
			t.Errorf("rank %d: %d disagreements, %+v", rank, f.calls.Disagreements(), counts)
		}
	}
}

// Ranks that are configured differently find out, and go by the default.
func TestMembersDisagree(t *testing.T) {
	force := choice.Forced{coll.Bcast: {Algorithm: "flat"}}
	w := newWorld(3, func(rank int, cfg *Config) {
		switch rank {
		case 1:
			cfg.Force = force
		case 2:
			cfg.Order = coll.OrderByLeft
		}
	})
	w.bcast(t, 1, 0, 10)
	w.bcast(t, 2, 1, 10000)
	var names []string
	for _, f := range *w {
		if f.calls.Disagreements() != 1 {
			t.Errorf("%d disagreements", f.calls.Disagreements())
		}
		names = append(names, fmt.Sprint(f.calls.Counts()))
	}
	if names[0] != names[1] || names[1] != names[2] {
		t.Errorf("different algorithms: %v", names)
	}

	w = newWorld(3, func(_ int, cfg *Config) { cfg.Force = force })
	w.bcast(t, 1, 0, 10)
	f := (*w)[0].calls
	if c := f.Counts(); f.Disagreements() != 0 || c[len(c)-1].Algorithm != "flat" || c[0].Bytes == 0 {
		t.Errorf("%d disagreements, %+v", f.Disagreements(), c)
	}
}
