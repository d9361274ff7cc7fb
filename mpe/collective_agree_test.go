package mpe_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/zrlmpi/zrlmpid/internal/testkit/colltest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Ranks of different versions may have different tables built in: then they go by what can
// carry out every call.
func TestVersionsDisagree(t *testing.T) {
	flat := []choice.Span{{UpTo: math.MaxInt, By: []choice.Choice{{Algorithm: "flat"}}}}
	other := choice.New(choice.Rows{}, choice.Rows{Rows: []choice.Row{{Collective: coll.Bcast, Ranks: 2, Spans: flat}}})
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		c.engines[2].SetBuiltIn(other)
		runCases(t, c.engines, []*colltest.Case{colltest.New(coll.Bcast, "", 3, 0, 10), colltest.New(coll.Bcast, "", 3, 1, 100_000)})
		for rank, e := range c.engines {
			s := e.Snapshot()
			last := s.Collectives[len(s.Collectives)-1]
			if s.Disagreements != 1 || last.Collective != "Bcast" || last.Algorithm != "binomial" || last.Calls != 2 {
				t.Errorf("rank %d: %d disagreements, %+v", rank, s.Disagreements, s.Collectives)
			}
		}
	})
}

// Ranks that are configured differently find out, and go by the default.
func TestMembersDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtendedWith(t, 3, nil, func(cfg *mpe.Config) {
			if cfg.Rank == 1 {
				cfg.Collectives.Force = choice.Forced{coll.Bcast: {Algorithm: "flat"}}
			}
			if cfg.Rank == 2 {
				cfg.Collectives.Order = coll.OrderByLeft
			}
		})
		defer c.close()
		cases := []*colltest.Case{colltest.New(coll.Bcast, "", 3, 0, 10), colltest.New(coll.Bcast, "atomic", 3, 0, 10), colltest.New(coll.Bcast, "", 3, 1, 10000)}
		runCases(t, c.engines, cases)
		var names []string
		for _, e := range c.engines {
			s := e.Snapshot()
			if s.Disagreements != 1 {
				t.Errorf("%d disagreements", s.Disagreements)
			}
			names = append(names, fmt.Sprint(s.Collectives))
		}
		if names[0] != names[1] || names[1] != names[2] {
			t.Errorf("different algorithms: %v", names)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newExtendedWith(t, 3, nil, func(cfg *mpe.Config) {
			cfg.Collectives.Force = choice.Forced{coll.Bcast: {Algorithm: "flat"}}
		})
		defer c.close()
		runCases(t, c.engines, []*colltest.Case{colltest.New(coll.Bcast, "", 3, 0, 10)})
		s := c.engines[0].Snapshot()
		if s.Disagreements != 0 || s.Collectives[len(s.Collectives)-1].Algorithm != "flat" || s.Collectives[0].Bytes == 0 {
			t.Errorf("%+v", s.Collectives)
		}
	})
}
