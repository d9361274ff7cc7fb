package collective

import (
	"fmt"
	"math"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// TestVersionsDisagree checks that ranks of different versions, with different built-in tables, use the algorithms
// that support every call.
func TestVersionsDisagree(t *testing.T) {
	flat := []choice.Span{{MaxBytes: math.MaxInt, Choices: []choice.Choice{{Algorithm: "flat"}}}}
	w := newWorld(3, nil)
	(*w)[2].calls.builtIn = choice.New(map[choice.Class]choice.Rows{
		choice.Network: {Rows: []choice.Row{{Collective: coll.Bcast, Ranks: 2, Spans: flat}}},
	})
	w.bcast(t, 1, 0, 10)
	w.bcast(t, 2, 1, 100_000)
	for rank, f := range *w {
		counts := f.calls.Counts()
		last := counts[len(counts)-1]
		if f.calls.Disagreements() != 1 || last.Collective != "Bcast" || last.Algorithm != "binomial" ||
			last.Calls != 2 {
			t.Errorf("rank %d: %d disagreements, %+v", rank, f.calls.Disagreements(), counts)
		}
	}
}

// TestMembersDisagree checks that ranks with different configurations detect it, and use the default table.
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

// TestOversubscribed checks that ranks choose the algorithms for oversubscribed hosts if all of them agree on it, and
// that this flag does not make the epoch 0.
func TestOversubscribed(t *testing.T) {
	by := func(name string) choice.Rows {
		spans := []choice.Span{{MaxBytes: math.MaxInt, Choices: []choice.Choice{{Algorithm: name}}}}
		return choice.Rows{Rows: []choice.Row{{Collective: coll.Bcast, Ranks: 2, Spans: spans}}}
	}
	table := choice.New(map[choice.Class]choice.Rows{choice.Network: by("chain"),
		choice.OversubscribedNetwork: by("flat")})
	for alone, want := range map[int]string{-1: "flat", 0: "chain", 2: "chain"} {
		w := newWorld(3, func(rank int, cfg *Config) {
			cfg.Table, cfg.Oversubscribed = table, rank != alone
		})
		w.bcast(t, 1, 0, 10)
		for rank, f := range *w {
			counts := f.calls.Counts()
			if last := counts[len(counts)-1]; f.calls.Disagreements() != 0 || last.Algorithm != want {
				t.Errorf("a core each on rank %d: rank %d: %d disagreements, %+v", alone, rank, f.calls.Disagreements(),
					counts)
			}
			if a := f.calls.agreements[1]; a == nil || a.epoch == 0 || a.epoch != (*w)[0].calls.agreements[1].epoch {
				t.Errorf("rank %d: %+v", rank, a)
			}
		}
	}
}
