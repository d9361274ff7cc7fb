package tune

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// minSpeedUp is the factor by which another choice must be faster to replace the current one. Smaller differences do
// not reappear reliably in the next measurement.
const minSpeedUp = 1.1

// makeTable makes the table from the first rounds of measurements.
func (t *tuner) makeTable(m bench.Machine, rounds int) error {
	document := &collectives.Document{Version: collectives.Version, Measured: collectives.Measured{
		CPU: m.CPU, Cores: m.Cores, System: m.System, Version: m.Version, Time: m.Time, Rounds: rounds,
	}}
	for _, g := range t.groups {
		class := document.Class(choice.ClassOf(sharesMemory[g.transport], g.ranks > m.Cores))
		if *class == nil {
			*class = &collectives.ClassTable{Transport: g.transport, Link: t.links[g.transport]}
		}
		(*class).Collectives = append((*class).Collectives, g.entries(rounds)...)
	}
	document.ForEachClass(func(_ choice.Class, class *collectives.ClassTable) { // sorted by collective, and then by ranks
		slices.SortStableFunc(class.Collectives,
			func(a, b collectives.Entry) int { return int(a.Collective) - int(b.Collective) })
	})
	table, err := collectives.New(document)
	if err != nil {
		return fmt.Errorf("what was measured makes no table: %w", err)
	}
	t.report.Table = table
	return nil
}

// entries returns an entry for each collective that was measured in the group.
func (g *group) entries(rounds int) (list []collectives.Entry) {
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		entry := collectives.Entry{Collective: collectives.Collective(of), Ranks: g.ranks}
		for _, c := range g.cells {
			if c.collective == of && !c.failed && !slices.Contains(entry.Bytes, c.bytes) {
				entry.Bytes = append(entry.Bytes, c.bytes)
			}
		}
		for _, c := range g.cells {
			if c.collective != of || c.failed {
				continue
			}
			i := slices.IndexFunc(entry.Medians, func(s collectives.Series) bool { return s.Choice == c.by })
			if i < 0 {
				i = len(entry.Medians)
				entry.Medians = append(entry.Medians, collectives.Series{Choice: c.by, Micros: make([]float64, len(entry.Bytes))})
			}
			// Ignore an incomplete round.
			entry.Medians[i].Micros[slices.Index(entry.Bytes, c.bytes)] = rounded(median(slices.Clone(c.micros[:rounds])))
		}
		if entry.Decide(minSpeedUp); len(entry.Decisions) > 0 {
			list = append(list, entry)
		}
	}
	return list
}
