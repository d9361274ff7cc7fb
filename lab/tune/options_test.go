package tune

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

func TestUsage(t *testing.T) {
	for _, x := range []struct {
		o    Options
		says string
	}{
		{Options{Transports: []string{"tpc"}}, `there is no transport "tpc"; there are shm, udp, tcp`},
		{Options{Transports: []string{"udp", "tcp"}},
			"udp and tcp are both of the class network, of which a table has one: name one of them"},
		{Options{Transports: []string{"shm", "shm"}}, "shm and shm are both of the class memory"},
		{Options{Ranks: []int{2, 1}}, "1 ranks: a collective has 2 to 128 here"},
		{Options{Ranks: []int{129}}, "129 ranks: a collective has 2 to 128 here"},
		{Options{Ranks: []int{4, 4}}, "4 ranks are named twice"},
		{Options{Collectives: []string{"brodcast"}},
			`unknown collective "brodcast" (did you mean "bcast"?): the collectives are barrier, bcast,`},
		{Options{Collectives: []string{"scan", "scan"}}, "scan is named twice"},
		{Options{MaxBytes: 7}, "at most 7 bytes: give 8 to 1073741824"},
		{Options{MaxBytes: 1<<30 + 1}, "at most 1073741825 bytes"},
		{Options{Rounds: -1}, "-1 rounds: there are 1 to 1000"},
		{Options{Limit: -1}, "a limit of -1ns: give a time"},
	} {
		_, err := Run(t.Context(), x.o, &strings.Builder{})
		if _, ok := errors.AsType[*UsageError](err); !ok || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v", x.o, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want string
	}{
		{Options{}, "[shm udp] [2 4 8] 11 2097152 5 30m0s"},
		{Options{Quick: true}, "[shm udp] [2 4] 11 32768 1 30m0s"},
		{Options{Quick: true, Transports: []string{"tcp"}, Ranks: []int{9, 3}, Collectives: []string{"scan", " bcast"},
			MaxBytes: 8, Rounds: 2, Limit: 1}, "[tcp] [3 9] 2 8 2 1ns"},
	} {
		all, err := x.o.setDefaults()
		if got := fmt.Sprint(x.o.Transports, x.o.Ranks, len(all), x.o.MaxBytes, x.o.Rounds, x.o.Limit); err != nil ||
			got != strings.ReplaceAll(x.want, "  ", " ") {
			t.Errorf("%s, %v, want %s", got, err, x.want)
		}
		if !slices.IsSorted(all) {
			t.Errorf("%v", all)
		}
	}
}

// TestPlan checks which measurements of a collective are made, and in which order.
func TestPlan(t *testing.T) {
	link := collectives.Link{Alpha: 1000, Beta: 1}
	for _, x := range []struct {
		of    coll.Collective
		ranks int
		max   int
		want  string
	}{
		{coll.Barrier, 4, 64, "barrier by dissemination, barrier by toggle"},
		{coll.Scan, 3, 32 << 10, "scan of 8 by doubling, scan of 8 by chain, scan of 32 by doubling, scan of 32 by " +
			"chain, scan of 128 by doubling, scan of 128 by chain, " +
			"scan of 512 by doubling, scan of 512 by chain, scan of 2KiB by doubling, scan of 2KiB by chain, scan of " +
			"8KiB by doubling, scan of 8KiB by chain, scan of 8KiB by chain:auto, " +
			"scan of 32KiB by doubling, scan of 32KiB by chain:auto, scan of 32KiB by chain:8KiB"},
		// All blocks together may be as long as the longest vector.
		{coll.Gather, 4, 128, "gather of 8 by flat, gather of 8 by binomial, gather of 32 by flat, gather of 32 " +
			"by binomial"},
		// Algorithms that do not support a call are not tried.
		{coll.Allgather, 3, 8, "allgather of 8 by ring, allgather of 8 by bruck"},
	} {
		o := Options{MaxBytes: x.max}
		var got []string
		for _, c := range o.planCells(x.of, x.ranks, "udp", link) {
			got = append(got, c.String())
		}
		if strings.Join(got, ", ") != x.want {
			t.Errorf("%v: %s, want\n%s", x.of, strings.Join(got, ", "), x.want)
		}
	}
	// Ranks that share memory also have shared buffers.
	o := Options{MaxBytes: 8}
	if cells := o.planCells(coll.Allreduce, 3, "shm", link); len(cells) == 0 ||
		cells[len(cells)-1].String() != "allreduce of 8 by shared-blocks" {
		t.Errorf("%v", cells)
	}
	// The longest vectors are tried with all segment sizes.
	o = Options{MaxBytes: 2 << 20}
	var ways []string
	for _, c := range o.planCells(coll.Bcast, 8, "udp", link) {
		if c.bytes != 2<<20 {
			continue
		}
		ways = append(ways, c.by.String())
		if c.by.Segment == choice.AutoSegment && c.segment != coll.PipelineSegment(8, 2<<20, 4, 1000, 1) ||
			c.by.Segment > 0 && c.segment != c.by.Segment {
			t.Errorf("%v has segments of %d", c, c.segment)
		}
	}
	if got := strings.Join(ways, " "); got != "binomial flat scatter-allgather chain:auto chain:8KiB chain:64KiB "+
		"chain:512KiB atomic:8KiB atomic:64KiB atomic:512KiB" {
		t.Error(got)
	}
}

func TestLine(t *testing.T) {
	for _, x := range []struct {
		y    []float64
		want collectives.Link
	}{
		{[]float64{1100, 2000, 11000}, collectives.Link{Alpha: 1000, Beta: 0.1}},
		{[]float64{10, 2000, 11000}, collectives.Link{Alpha: 1, Beta: 0.133}}, // alpha has a lower bound
		{[]float64{1000, 1000, 1000}, collectives.Link{Alpha: 1000, Beta: 0.001}},
	} {
		if got := fitLine([]float64{1000, 10000, 100000}, x.y); got.Alpha != x.want.Alpha ||
			max(got.Beta/x.want.Beta, x.want.Beta/got.Beta) > 1.01 {
			t.Errorf("%v: %+v, want %+v", x.y, got, x.want)
		}
	}
}

func TestRounded(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 1.23456: 1.235, 123456: 123500, 0.0123456: 0.01235, 99999: 100000,
		2: 2, 44.7599999: 44.76} {
		if got := rounded(v); got != want {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
}
