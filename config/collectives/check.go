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
func newTable(d *Document, source *strictyaml.Source) (*Table, error) {
	p := strictyaml.NewProblems(source)
	if d.Version != Version {
		p.Add("version", "%d is not known: this zrlmpid reads version %d; write the table with its zrlbench tune",
			d.Version, Version)
	}
	t := &Table{doc: *d, rows: map[choice.Class]choice.Rows{}}
	d.ForEachClass(func(class choice.Class, from *ClassTable) {
		key, into := string(class), choice.Rows{Link: choice.Link(from.Link)}
		checkTime(p, key+".link.alpha", from.Link.Alpha)
		checkTime(p, key+".link.beta", from.Link.Beta)
		for i := range from.Collectives {
			addEntry(p, &into, fmt.Sprintf("%s.collectives[%d]", key, i), &from.Collectives[i])
		}
		t.rows[class] = into
	})
	if len(t.rows) == 0 {
		p.Add("", "no table in the document: add one for %s, for %s, or both, and for oversubscribed hosts",
			choice.Memory, choice.Network)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	t.Table = choice.New(t.rows)
	return t, nil
}

// addEntry validates an entry and adds it to the rows of its class.
func addEntry(p *strictyaml.Problems, into *choice.Rows, key string, e *Entry) {
	of := coll.Collective(e.Collective)
	switch {
	case of < coll.Barrier || of > coll.Exscan:
		p.Add(key+".collective", "missing: name the collective of the entry")
		return
	case e.Ranks < 2 || e.Ranks > maxRanks:
		p.Add(key+".ranks", "%d is outside 2 to %d", e.Ranks, maxRanks)
		return
	case slices.ContainsFunc(into.Rows, func(r choice.Row) bool { return r.Collective == of && r.Ranks == e.Ranks }):
		p.Add(key+".ranks", "there is another entry of %s with %d ranks: keep one of them", choice.CollectiveName(of), e.Ranks)
		return
	}
	r := choice.Row{Collective: of, Ranks: e.Ranks}
	checkLimits(p, key+".choose", e.Decisions)
	for i, d := range e.Decisions {
		key := fmt.Sprintf("%s.choose[%d]", key, i)
		s := choice.Span{MaxBytes: math.MaxInt, Choices: d.Choices}
		if d.MaxBytes != nil {
			s.MaxBytes = int(min(*d.MaxBytes, math.MaxInt))
		}
		if len(d.Choices) == 0 {
			p.Add(key+".by", "missing: name the algorithms to choose from")
		}
		for j, by := range d.Choices {
			if problem := choiceProblem(of, by); problem != "" {
				p.Add(fmt.Sprintf("%s.by[%d]", key, j), "%s", problem)
				continue
			}
			if by.Segment == choice.AutoSegment && !(into.Link.Alpha > 0 && into.Link.Beta > 0) {
				p.Add(fmt.Sprintf("%s.by[%d]", key, j), "%v needs the link's alpha and beta: give them", by)
			}
		}
		r.Spans = append(r.Spans, s)
	}
	checkMedians(p, key, of, e)
	into.Rows = append(into.Rows, r)
}

// checkLimits checks that the decisions are in order and cover all lengths.
func checkLimits(p *strictyaml.Problems, key string, all []Decision) {
	if len(all) == 0 {
		p.Add(key, "missing: give the choice, as in [{by: [binomial]}]")
	}
	before := bytesize.Size(-1)
	for i, d := range all {
		key := fmt.Sprintf("%s[%d]", key, i)
		switch last := i == len(all)-1; {
		case d.MaxBytes == nil && last:
		case d.MaxBytes == nil:
			p.Add(key, "without up_to it is for all lengths, so it must be the last")
		case *d.MaxBytes <= before:
			p.Add(key+".up_to", "%v is not above the up_to of the previous entry: put them in order", *d.MaxBytes)
		case last:
			p.Add(key, "the last entry must cover all longer calls: leave up_to out, or add an entry without it")
		}
		if d.MaxBytes != nil {
			before = *d.MaxBytes
		}
	}
}

// checkMedians checks the medians, which are informative only.
func checkMedians(p *strictyaml.Problems, key string, of coll.Collective, e *Entry) {
	for i := range e.Bytes {
		if e.Bytes[i] < 0 || i > 0 && e.Bytes[i] <= e.Bytes[i-1] {
			p.Add(fmt.Sprintf("%s.bytes[%d]", key, i),
				"%d is out of order: lengths must be 0 or more, in ascending order", e.Bytes[i])
		}
	}
	for i, s := range e.Medians {
		key := fmt.Sprintf("%s.medians[%d]", key, i)
		if problem := choiceProblem(of, s.Choice); problem != "" {
			p.Add(key+".by", "%s", problem)
		}
		if len(s.Micros) != len(e.Bytes) {
			p.Add(key+".us", "%d medians for %d lengths: give one for each length, 0 if not measured", len(s.Micros),
				len(e.Bytes))
		}
		for j, us := range s.Micros {
			checkTime(p, fmt.Sprintf("%s.us[%d]", key, j), us)
		}
	}
}

func checkTime(p *strictyaml.Problems, key string, t float64) {
	if !(t >= 0) || math.IsInf(t, 0) {
		p.Add(key, "%v is not a time: must be 0 or more", t)
	}
}
