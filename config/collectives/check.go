package collectives

import (
	"fmt"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// maxRanks exceeds the size of any communicator.
const maxRanks = 1 << 16

// newTable validates a document, and makes a table of it.
func newTable(document *Document, source *strictyaml.Source) (*Table, error) {
	problems := strictyaml.NewProblems(source)
	if document.Version != Version {
		problems.Add("version", "%d is not known: this zrlmpid reads version %d; write the table with its zrlbench tune",
			document.Version, Version)
	}
	table := &Table{doc: *document, rows: map[choice.Class]choice.Rows{}}
	document.ForEachClass(func(class choice.Class, from *ClassTable) {
		key, into := string(class), choice.Rows{Link: choice.Link(from.Link)}
		checkTime(problems, key+".link.alpha", from.Link.Alpha)
		checkTime(problems, key+".link.beta", from.Link.Beta)
		for i := range from.Collectives {
			addEntry(problems, &into, fmt.Sprintf("%s.collectives[%d]", key, i), &from.Collectives[i])
		}
		table.rows[class] = into
	})
	if len(table.rows) == 0 {
		problems.Add("", "no table in the document: add one for %s, for %s, or both, and for oversubscribed hosts",
			choice.Memory, choice.Network)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	table.Table = choice.New(table.rows)
	return table, nil
}

// addEntry validates an entry and adds it to the rows of its class.
func addEntry(problems *strictyaml.Problems, into *choice.Rows, key string, e *Entry) {
	of := coll.Collective(e.Collective)
	switch {
	case of < coll.Barrier || of > coll.Exscan:
		problems.Add(key+".collective", "missing: name the collective of the entry")
		return
	case e.Ranks < 2 || e.Ranks > maxRanks:
		problems.Add(key+".ranks", "%d is outside 2 to %d", e.Ranks, maxRanks)
		return
	case slices.ContainsFunc(into.Rows, func(r choice.Row) bool { return r.Collective == of && r.Ranks == e.Ranks }):
		problems.Add(key+".ranks", "there is another entry of %s with %d ranks: keep one of them",
			choice.CollectiveName(of), e.Ranks)
		return
	}
	row := choice.Row{Collective: of, Ranks: e.Ranks}
	checkLimits(problems, key+".choose", e.Decisions)
	for i, decision := range e.Decisions {
		key := fmt.Sprintf("%s.choose[%d]", key, i)
		span := choice.Span{MaxBytes: math.MaxInt, Choices: decision.Choices}
		if decision.MaxBytes != nil {
			span.MaxBytes = int(min(*decision.MaxBytes, math.MaxInt))
		}
		if len(decision.Choices) == 0 {
			problems.Add(key+".by", "missing: name the algorithms to choose from")
		}
		for j, by := range decision.Choices {
			if problem := choiceProblem(of, by); problem != "" {
				problems.Add(fmt.Sprintf("%s.by[%d]", key, j), "%s", problem)
				continue
			}
			if by.Segment == choice.AutoSegment && !(into.Link.Alpha > 0 && into.Link.Beta > 0) {
				problems.Add(fmt.Sprintf("%s.by[%d]", key, j), "%v needs the link's alpha and beta: give them", by)
			}
		}
		row.Spans = append(row.Spans, span)
	}
	checkMedians(problems, key, of, e)
	into.Rows = append(into.Rows, row)
}

// checkLimits checks that the decisions are in order and cover all lengths.
func checkLimits(problems *strictyaml.Problems, key string, all []Decision) {
	if len(all) == 0 {
		problems.Add(key, "missing: give the choice, as in [{by: [binomial]}]")
	}
	before := bytesize.Size(-1)
	for i, decision := range all {
		key := fmt.Sprintf("%s[%d]", key, i)
		switch last := i == len(all)-1; {
		case decision.MaxBytes == nil && last:
		case decision.MaxBytes == nil:
			problems.Add(key, "without up_to it is for all lengths, so it must be the last")
		case *decision.MaxBytes <= before:
			problems.Add(key+".up_to", "%v is not above the up_to of the previous entry: put them in order", *decision.MaxBytes)
		case last:
			problems.Add(key, "the last entry must cover all longer calls: leave up_to out, or add an entry without it")
		}
		if decision.MaxBytes != nil {
			before = *decision.MaxBytes
		}
	}
}

// checkMedians checks the medians. They must be complete, although they do not affect the decisions.
func checkMedians(problems *strictyaml.Problems, key string, of coll.Collective, e *Entry) {
	for i := range e.Bytes {
		if e.Bytes[i] < 0 || i > 0 && e.Bytes[i] <= e.Bytes[i-1] {
			problems.Add(fmt.Sprintf("%s.bytes[%d]", key, i),
				"%d is out of order: lengths must be 0 or more, in ascending order", e.Bytes[i])
		}
	}
	for i, series := range e.Medians {
		key := fmt.Sprintf("%s.medians[%d]", key, i)
		if problem := choiceProblem(of, series.Choice); problem != "" {
			problems.Add(key+".by", "%s", problem)
		}
		if len(series.Micros) != len(e.Bytes) {
			problems.Add(key+".us", "%d medians for %d lengths: give one for each length, 0 if not measured", len(series.Micros),
				len(e.Bytes))
		}
		for j, us := range series.Micros {
			checkTime(problems, fmt.Sprintf("%s.us[%d]", key, j), us)
		}
	}
}

func checkTime(p *strictyaml.Problems, key string, t float64) {
	if !(t >= 0) || math.IsInf(t, 0) {
		p.Add(key, "%v is not a time: must be 0 or more", t)
	}
}
