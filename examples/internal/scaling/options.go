package scaling

import (
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
)

// Options are the flags of a program that is measured.
type Options struct {
	// Sizes are those of the problem, and Repeat is how often each is solved by
	// each number of processors.
	Sizes  demo.List
	Repeat int
	// Pace is how long a multiplication with its addition is to take.
	Pace time.Duration
	// Datatype is that of the numbers.
	Datatype Datatype
	// Paper: the paper's times are shown, too.
	Paper bool
}

// paperProcessors are the numbers of processors in the paper's tables.
var paperProcessors = []int{1, 2, 4, 6, 8}

// maxRepeat bounds the times that are kept, and maxPace is the slowest processor.
const (
	maxRepeat = 10_000
	maxPace   = time.Millisecond
)

// Declare declares the flags, for a problem of these sizes by default.
func (o *Options) Declare(f *flag.FlagSet, sizes []int) {
	o.Sizes = slices.Clone(sizes)
	f.Var(&o.Sizes, "sizes", "`numbers` of rows, and of columns")
	f.IntVar(&o.Repeat, "repeat", 5, "solve each problem so many `times`, and take the medians")
	f.DurationVar(&o.Pace, "pace", 0, "wait as if a multiplication with its addition took so long: for slow processors; the paper's take 9us")
	f.TextVar(&o.Datatype, "datatype", Float, "what numbers are: float, or double, which stand-ins do not know")
	f.BoolVar(&o.Paper, "paper", false, "show the paper's times beside ours")
}

// Check refuses flags that cannot be, for a program that takes sizes up to max.
func (o *Options) Check(max int) error {
	for _, size := range o.Sizes {
		if size < 1 || size > max {
			return fmt.Errorf("-sizes %d: 1 to %d are possible", size, max)
		}
	}
	if o.Repeat < 1 || o.Repeat > maxRepeat {
		return fmt.Errorf("-repeat %d: 1 to %d are possible", o.Repeat, maxRepeat)
	}
	if o.Pace < 0 || o.Pace > maxPace {
		return fmt.Errorf("-pace %v: 0s to %v are possible", o.Pace, maxPace)
	}
	return nil
}

// Words is room for a whole matrix, of doubles, in 32-bit words.
func (o *Options) Words() int {
	most := slices.Max(o.Sizes)
	return 2 * most * most
}

// Clusters has clusters of 2, 4, 6 and 8 ranks, as in the paper's tables, as far as
// there are to be so many ranks, and one of all ranks. A cluster of 1 is not needed
// beside others: one processor is what all are measured by.
func (o *Options) Clusters(ranks int) (clusters []int) {
	for _, n := range paperProcessors {
		if n > 1 && n < ranks {
			clusters = append(clusters, n)
		}
	}
	return append(clusters, ranks)
}

// Datatype is float, of 32 bits, or double, of 64.
type Datatype string

// The Datatypes.
const (
	Float  Datatype = "float"
	Double Datatype = "double"
)

// MarshalText gives the name.
func (d Datatype) MarshalText() ([]byte, error) { return []byte(d), nil }

// UnmarshalText reads it.
func (d *Datatype) UnmarshalText(text []byte) error {
	switch t := Datatype(text); t {
	case Float, Double:
		*d = t
		return nil
	}
	return fmt.Errorf("unknown datatype %q: it is float or double", text)
}
