package collectives

import (
	"errors"
	"testing"
)

func TestParseForced(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"", ""},
		{" ", ""},
		{"bcast=atomic:65536,allreduce=ring", "allreduce=ring,bcast=atomic:64KiB"},
		{" reduce_scatter = pairwise , scan=chain:1000", "reduce_scatter=pairwise,scan=chain:1000"},
		{"barrier=toggle", "barrier=toggle"},
	} {
		f, err := ParseForced(x.text)
		if err != nil || f.String() != x.want {
			t.Errorf("%q: %v, %v", x.text, f, err)
		}
	}
	for _, x := range []struct{ text, want string }{
		{"bcast", `"bcast": write COLLECTIVE=ALGORITHM, as in bcast=binomial, or COLLECTIVE=ALGORITHM:SEGMENT, as in bcast=chain:64KiB`},
		{"bcast=flat,", `"": write COLLECTIVE=ALGORITHM, as in bcast=binomial, or COLLECTIVE=ALGORITHM:SEGMENT, as in bcast=chain:64KiB`},
		{"brodcast=flat", `"brodcast=flat": unknown collective "brodcast" (did you mean "bcast"?): the collectives are barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, reduce_scatter, scan, exscan`},
		{"bcast=flat,bcast=chain", `"bcast=chain": bcast is listed twice: keep one of them`},
		{"bcast=ring", `"bcast=ring": bcast has no algorithm "ring": it has binomial, flat, scatter-allgather, chain, atomic, tree, shared`},
		{"bcast=", `"bcast=": bcast has no algorithm "": it has binomial, flat, scatter-allgather, chain, atomic, tree, shared`},
		{"scan=chain:x", `"scan=chain:x": segments of "x": give a size from 1 to 1GiB, as in chain:64KiB`},
		{"scan=chain:2GiB", `"scan=chain:2GiB": segments of "2GiB": give a size from 1 to 1GiB, as in chain:64KiB`},
		{"scan=chain:auto", `"scan=chain:auto": only a table has the values that auto needs: give a size, as in chain:64KiB`},
		{"scan=doubling:8", `"scan=doubling:8": doubling does not segment its data: leave the segment out, or use chain`},
	} {
		f, err := ParseForced(x.text)
		if f != nil || err == nil || err.Error() != x.want || !errors.Is(err, ErrForced) {
			t.Errorf("%s: %v, %v\nwant %s", x.text, f, err, x.want)
		}
	}
}
