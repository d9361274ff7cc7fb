package node

import (
	"runtime"
	"testing"
)

// TestProcessors checks that the processors of a host are the union of the processors that its ranks may use.
func TestProcessors(t *testing.T) {
	for _, tt := range []struct {
		lists []string
		want  int
	}{
		{nil, 0},
		{[]string{"0"}, 1},
		{[]string{"0", "1"}, 2},         // each rank is bound to one
		{[]string{"0", "0"}, 1},         // the launcher was bound, hence all ranks
		{[]string{"0-3", "0-3"}, 4},     // no rank is bound
		{[]string{"0-1,8", "2,8-9"}, 5}, // overlapping sets
		{[]string{"0-3", "", "4"}, 0},   // one set is unknown
		{[]string{"1023", "0-1023"}, 1024},
	} {
		if have, err := countProcessors(tt.lists); have != tt.want || err != nil {
			t.Errorf("%q: %d, %v", tt.lists, have, err)
		}
	}
	for _, list := range []string{"x", "1-", "-1", "3-1", "1024", "0,,1", "0-99999999999999999999"} {
		if _, err := countProcessors([]string{list}); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
	if own := allowedProcessors(); own != "" {
		if n, err := countProcessors([]string{own}); n != runtime.NumCPU() || err != nil {
			t.Errorf("%s: %d of %d, %v", own, n, runtime.NumCPU(), err)
		}
	}
}
