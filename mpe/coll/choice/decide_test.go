package choice_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

func TestDecideSpans(t *testing.T) {
	by := func(name string, segment int, us ...float64) choice.Series {
		return choice.Series{Choice: choice.Choice{Algorithm: name, Segment: segment}, Micros: us}
	}
	for _, x := range []struct {
		name    string
		of      coll.Collective
		bytes   []int
		medians []choice.Series
		want    string
	}{
		{"one", coll.Bcast, []int{8}, []choice.Series{by("flat", 0, 3)}, "any: [flat]"},
		{"up to the algorithm for all calls", coll.Bcast, []int{8},
			[]choice.Series{by("flat", 0, 3), by("binomial", 0, 2), by("chain", 0, 1)}, "any: [chain binomial]"},
		{"the fastest supports only some calls", coll.Bcast, []int{8},
			[]choice.Series{by("flat", 0, 3), by("binomial", 0, 4), by("chain", 0, 1)}, "any: [chain flat binomial]"},
		{"where lines cross", coll.Bcast, []int{800, 1600},
			[]choice.Series{by("binomial", 0, 10, 40), by("chain", 0, 20, 30)},
			"1200: [binomial], any: [chain binomial]"},
		{"less than 10%", coll.Bcast, []int{8, 16}, []choice.Series{by("binomial", 0, 10, 20), by("flat", 0, 20, 18.2)},
			"any: [binomial]"},
		{"10% and more", coll.Bcast, []int{800, 1600},
			[]choice.Series{by("binomial", 0, 10, 20), by("flat", 0, 10.5, 18)},
			"900: [binomial], any: [flat binomial]"},
		{"less than 10% at first", coll.Bcast, []int{8, 16},
			[]choice.Series{by("flat", 0, 10, 10), by("binomial", 0, 10.9, 10)}, "any: [binomial]"},
		{"10% of another than the first", coll.Bcast, []int{8, 16, 32},
			[]choice.Series{by("binomial", 0, 30, 30, 30), by("flat", 0, 10, 10.5, 10), by("chain", 8, 20, 10, 9.5)},
			"any: [flat chain:8 binomial]"},
		{"the best segment of each", coll.Bcast, []int{8, 16},
			[]choice.Series{by("atomic", 4, 5, 5), by("chain", 4, 7, 9), by("chain", 8, 9, 6),
				by("chain", choice.AutoSegment, 0, 6.1), by("binomial", 0, 20, 20)},
			"any: [atomic:4 chain:auto binomial]"},
		{"not measured here", coll.Bcast, []int{8, 32}, []choice.Series{by("binomial", 0, 8, 9), by("chain", 8, 0, 5)},
			"16: [binomial], any: [chain:8 binomial]"},
		{"nothing measured here", coll.Bcast, []int{8, 16, 32, 64}, []choice.Series{by("binomial", 0, 0, 8, 0, 9)},
			"any: [binomial]"},
		{"back again", coll.Bcast, []int{8, 16, 24},
			[]choice.Series{by("binomial", 0, 1, 4, 1), by("flat", 0, 4, 1, 4)},
			"12: [binomial], 20: [flat binomial], any: [binomial]"},
		{"at once", coll.Bcast, []int{8, 9}, []choice.Series{by("binomial", 0, 1, 4), by("flat", 0, 4, 1)},
			"8: [binomial], any: [flat binomial]"},
		{"of a barrier", coll.Barrier, []int{0}, []choice.Series{by("toggle", 0, 1), by("dissemination", 0, 2)},
			"any: [toggle dissemination]"},
	} {
		spans := choice.DecideSpans(x.of, x.bytes, x.medians, 1.1)
		got := ""
		for i, d := range spans {
			end := "any"
			if d.MaxBytes != math.MaxInt {
				end = strconv.Itoa(d.MaxBytes)
			}
			if i > 0 {
				got += ", "
			}
			got += fmt.Sprintf("%s: %v", end, d.Choices)
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}
