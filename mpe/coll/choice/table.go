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

// Table is an immutable table of choices, safe for concurrent use. A nil Table chooses the first algorithm that
// supports the call.
type Table struct {
	classes map[Class]*class
	hash    uint64
}

// class holds the decisions for a Class.
type class struct {
	link Link
	rows [coll.Exscan + 1][]Row // sorted by ranks
}

// Link specifies the cost of a message: n bytes take Alpha + n·Beta nanoseconds.
type Link struct {
	Alpha, Beta float64
}

// Rows holds a table's decisions for one class of calls.
type Rows struct {
	Link Link
	Rows []Row
}

// Row holds the decisions for a collective with a number of ranks. A class contains at most one row for each collective
// and number of ranks.
type Row struct {
	Collective coll.Collective
	Ranks      int
	Spans      []Span
}

// Span holds the choices for calls longer than the preceding span, up to MaxBytes bytes, which is math.MaxInt in the
// last span. The first choice that supports the call applies.
type Span struct {
	MaxBytes int
	Choices  []Choice
}

// New returns a table with the given rows, without unknown algorithms. A class missing in rows uses the rows of its
// sibling: the class that differs only in whether ranks share cores.
func New(rows map[Class]Rows) *Table {
	table := &Table{classes: map[Class]*class{}}
	for name, r := range rows {
		c := new(class)
		c.add(&r)
		table.classes[name] = c
	}
	table.hash = table.computeHash()
	for _, name := range Classes {
		if _, ok := rows[name]; !ok {
			table.classes[name] = table.classes[name.sibling()]
		}
	}
	return table
}

// add adds copies of rows. It drops algorithms that this version does not know, so that tables of other versions can be
// used.
func (c *class) add(from *Rows) {
	c.link = from.Link
	for _, row := range from.Rows {
		row.Spans = slices.Clone(row.Spans)
		for i := range row.Spans {
			s := &row.Spans[i]
			s.Choices = slices.DeleteFunc(slices.Clone(s.Choices),
				func(by Choice) bool { return coll.Named(row.Collective, by.Algorithm) == nil })
		}
		c.rows[row.Collective] = append(c.rows[row.Collective], row)
	}
	for of := range c.rows {
		slices.SortFunc(c.rows[of], func(a, b Row) int { return cmp.Compare(a.Ranks, b.Ranks) })
	}
}

// Measured returns the measured part of the built-in table. It must not be modified.
func Measured() map[Class]Rows { return measured }

// Default returns the built-in table: measured choices for oversubscribed hosts, and choices by the formulas of package
// coll for other hosts and for more ranks than were measured.
var Default = sync.OnceValue(func() *Table {
	memory, network := formula(memoryLink), formula(networkLink)
	return New(map[Class]Rows{
		Memory: memory, OversubscribedMemory: withMoreRanks(measured[OversubscribedMemory], memory),
		Network: network, OversubscribedNetwork: withMoreRanks(measured[OversubscribedNetwork], network),
	})
})

// withMoreRanks adds rows computed by formula for more ranks than were measured.
func withMoreRanks(measured, formula Rows) Rows {
	measured.Rows = slices.Clone(measured.Rows)
	for _, r := range formula.Rows {
		if !slices.ContainsFunc(measured.Rows,
			func(m Row) bool { return m.Collective == r.Collective && m.Ranks >= r.Ranks }) {
			measured.Rows = append(measured.Rows, r)
		}
	}
	return measured
}

// Choose returns the choice for a valid call between ranks of a class. With equal tables and classes, all ranks of a
// call get the same choice.
//
// Choose selects the row with the greatest number of ranks that does not exceed the call's, or the first row if all
// exceed it; then the span that includes Call.Bytes; then the first choice in the span that supports the call. If no
// row or choice matches, it returns the collective's first algorithm that supports the call.
//
// For an Allgather or ReduceScatter with layouts, which all ranks know, the mean block size replaces Call.Bytes. For
// other calls with layouts, Choose returns the first algorithm that supports the call.
//
// Segments are rounded down to whole elements of the call, but to at least one.
func (t *Table) Choose(of Class, call *coll.Call) Choice {
	if call.Collective < coll.Barrier || call.Collective > coll.Exscan {
		return Choice{}
	}
	n, known := length(call)
	if t == nil || !known || call.Ranks < 2 {
		return firstSupported(call)
	}
	class := t.classes[of]
	if class == nil {
		return firstSupported(call)
	}
	row := class.row(call)
	if row == nil {
		return firstSupported(call)
	}
	s := 0
	for n > row.Spans[s].MaxBytes {
		s++
	}
	for _, choice := range row.Spans[s].Choices {
		if !choice.supports(call) {
			continue
		}
		if choice.Segment == AutoSegment {
			choice.Segment = coll.PipelineSegment(call.Ranks, call.Bytes, call.Elem, class.link.Alpha, class.link.Beta)
		}
		choice.Segment = roundSegment(choice.Segment, call.Elem)
		return choice
	}
	return firstSupported(call)
}

// row returns the table's row that applies to the call, or nil.
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

// length returns the length by which to search the table for the call, or false if not all ranks know it.
func length(call *coll.Call) (int, bool) {
	if !call.Vector {
		return call.Bytes, true
	}
	if call.Collective != coll.Allgather && call.Collective != coll.ReduceScatter || len(call.Recv.Sizes) == 0 {
		return 0, false
	}
	sum := 0
	for _, n := range call.Recv.Sizes {
		sum += n
	}
	return sum / len(call.Recv.Sizes), true
}

// supports reports whether the choice's algorithm supports the call.
func (c Choice) supports(call *coll.Call) bool {
	for _, a := range algorithms[call.Collective] {
		if a.Name == c.Algorithm {
			return a.Supports(call)
		}
	}
	return false
}

// firstSupported returns the first algorithm that supports the call.
func firstSupported(call *coll.Call) Choice {
	for _, a := range algorithms[call.Collective] {
		if a.Supports(call) {
			return Choice{Algorithm: a.Name}
		}
	}
	return Choice{Algorithm: algorithms[call.Collective][0].Name}
}

// roundSegment rounds a segment size to a multiple of the element size, but at least to one element.
func roundSegment(segment, elem int) int {
	if segment == 0 || elem <= 1 {
		return segment
	}
	return max(segment-segment%elem, elem)
}

// Hash returns a 64-bit hash of the contents of the table that affect choices. Equal tables have equal hashes,
// regardless of other contents of their files. The hash of a nil Table is 0.
func (t *Table) Hash() uint64 {
	if t == nil {
		return 0
	}
	return t.hash
}

// computeHash returns a hash of everything that can affect a choice. Ranks compare it to detect that their tables
// differ.
func (t *Table) computeHash() uint64 {
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
					number(uint64(s.MaxBytes))
					for _, by := range s.Choices {
						fmt.Fprintf(h, "%v,", by)
					}
				}
			}
		}
	}
	return h.Sum64()
}
