package choice

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Table has the choices. It does not change, so any number of goroutines may use it. A
// nil Table has no choices: what fits every call is taken.
type Table struct {
	classes map[Class]*class
	hash    uint64
}

// class is what is decided for a Class.
type class struct {
	link Link
	rows [coll.Exscan + 1][]Row // in the order of ranks
}

// Link is what a message of n bytes takes: Alpha + n·Beta nanoseconds.
type Link struct {
	Alpha, Beta float64
}

// Rows are what a table decides for a class.
type Rows struct {
	Link Link
	Rows []Row
}

// Row is what is decided for a collective of so many ranks, once for each number.
type Row struct {
	Collective coll.Collective
	Ranks      int
	Spans      []Span
}

// Span is what is decided for calls of up to UpTo bytes, that the span before does not
// have. The last span has math.MaxInt. The first choice that can carry out the call is
// taken.
type Span struct {
	UpTo int
	By   []Choice
}

// New makes a table. Choices that there are not are left out. A class that it does not have
// goes by the other one of the same ranks, with more cores or fewer.
func New(rows map[Class]Rows) *Table {
	t := &Table{classes: map[Class]*class{}}
	for name, r := range rows {
		c := new(class)
		c.add(&r)
		t.classes[name] = c
	}
	t.hash = t.sum()
	for _, name := range Classes {
		if _, ok := rows[name]; !ok {
			t.classes[name] = t.classes[name.sibling()]
		}
	}
	return t
}

func (c *class) add(from *Rows) {
	c.link = from.Link
	for _, r := range from.Rows {
		r.Spans = slices.Clone(r.Spans)
		for i := range r.Spans {
			s := &r.Spans[i]
			s.By = slices.DeleteFunc(slices.Clone(s.By), func(by Choice) bool { return coll.Named(r.Collective, by.Algorithm) == nil })
		}
		c.rows[r.Collective] = append(c.rows[r.Collective], r)
	}
	for of := range c.rows {
		slices.SortFunc(c.rows[of], func(a, b Row) int { return cmp.Compare(a.Ranks, b.Ranks) })
	}
}

// Measured returns what the built-in table has by measurements. It must not be changed.
func Measured() map[Class]Rows { return measured }

// Default is the table of those who have none of their own: what was measured, and for more
// ranks the formulas of package coll.
var Default = sync.OnceValue(func() *Table {
	memory, network := formula(memoryLink), formula(networkLink)
	return New(map[Class]Rows{
		Memory: memory, OversubscribedMemory: beyond(measured[OversubscribedMemory], memory),
		Network: network, OversubscribedNetwork: beyond(measured[OversubscribedNetwork], network),
	})
})

// beyond adds the rows of formulas for more ranks than were measured.
func beyond(measured, formula Rows) Rows {
	measured.Rows = slices.Clone(measured.Rows)
	for _, r := range formula.Rows {
		if !slices.ContainsFunc(measured.Rows, func(m Row) bool { return m.Collective == r.Collective && m.Ranks >= r.Ranks }) {
			measured.Rows = append(measured.Rows, r)
		}
	}
	return measured
}

// Choose says how to carry out a valid call between ranks of a class. All ranks of a
// call that have the same table and give the same class come to the same.
//
// Of the numbers of ranks that were measured, the greatest counts that is not above the
// call's, or the smallest if all are. Of its ranges of lengths, that counts in which
// Call.Bytes is; the ends of ranges are part of the table. In it, the first choice
// counts that can carry out the call. If none can, or nothing was measured, it is the
// collective's first algorithm, which can always.
//
// Calls with layouts count by the mean of the blocks where all ranks know it, in
// Allgather and ReduceScatter. In others, it is the first algorithm that can.
//
// Segments are rounded to whole elements of the call, down but to one at least.
func (t *Table) Choose(of Class, c *coll.Call) Choice {
	if c.Collective < coll.Barrier || c.Collective > coll.Exscan {
		return Choice{}
	}
	n, known := length(c)
	if t == nil || !known || c.Ranks < 2 {
		return first(c)
	}
	class := t.classes[of]
	if class == nil {
		return first(c)
	}
	r := class.row(c)
	if r == nil {
		return first(c)
	}
	s := 0
	for n > r.Spans[s].UpTo {
		s++
	}
	for _, choice := range r.Spans[s].By {
		if !choice.can(c) {
			continue
		}
		if choice.Segment == Auto {
			choice.Segment = coll.PipelineSegment(c.Ranks, c.Bytes, c.Elem, class.link.Alpha, class.link.Beta)
		}
		choice.Segment = whole(choice.Segment, c.Elem)
		return choice
	}
	return first(c)
}

// row is the one that counts for the call, or nil.
func (c *class) row(call *coll.Call) *Row {
	rows := c.rows[call.Collective]
	if len(rows) == 0 {
		return nil
	}
	i := 0
	for i+1 < len(rows) && rows[i+1].Ranks <= call.Ranks {
		i++
	}
	return &rows[i]
}

// length is what the table counts by. It is false if not all ranks know it.
func length(c *coll.Call) (int, bool) {
	if !c.Vector {
		return c.Bytes, true
	}
	if c.Collective != coll.Allgather && c.Collective != coll.ReduceScatter || len(c.Recv.Sizes) == 0 {
		return 0, false
	}
	sum := 0
	for _, n := range c.Recv.Sizes {
		sum += n
	}
	return sum / len(c.Recv.Sizes), true
}

// can reports whether the choice can carry out the call.
func (c Choice) can(call *coll.Call) bool {
	for _, a := range algorithms[call.Collective] {
		if a.Name == c.Algorithm {
			return a.Can(call)
		}
	}
	return false
}

// first is the first algorithm that can carry out the call.
func first(c *coll.Call) Choice {
	for _, a := range algorithms[c.Collective] {
		if a.Can(c) {
			return Choice{Algorithm: a.Name}
		}
	}
	return Choice{Algorithm: algorithms[c.Collective][0].Name}
}

// whole rounds a segment to whole elements.
func whole(segment, elem int) int {
	if segment == 0 || elem <= 1 {
		return segment
	}
	return max(segment-segment%elem, elem)
}

// Hash returns the same for two tables if all that decides is the same in them, whatever
// else their files say, and otherwise different values, within the limits of 64 bits.
func (t *Table) Hash() uint64 {
	if t == nil {
		return 0
	}
	return t.hash
}

func (t *Table) sum() uint64 {
	h := fnv.New64a()
	number := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) } // never fails
	for _, name := range Classes {
		c := t.classes[name]
		if c == nil {
			continue
		}
		fmt.Fprintf(h, "%s:", name)
		number(math.Float64bits(c.link.Alpha))
		number(math.Float64bits(c.link.Beta))
		for of := range c.rows {
			for _, r := range c.rows[of] {
				number(uint64(of))
				number(uint64(r.Ranks))
				for _, s := range r.Spans {
					number(uint64(s.UpTo))
					for _, by := range s.By {
						fmt.Fprintf(h, "%v,", by)
					}
				}
			}
		}
	}
	return h.Sum64()
}
