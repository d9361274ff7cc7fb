package schedule

import (
	"fmt"
	"testing"
)

// TestEach: every schedule is run once, including schedules of packets that exist because of a fault.
func TestEach(t *testing.T) {
	seen := map[string]int{}
	Each(2, 3, func(faults []Fault) int {
		seen[fmt.Sprint(faults)]++
		packets := 2
		for _, f := range faults {
			if f.Kind == 0 {
				packets++ // the packet is retransmitted
			}
		}
		return packets
	})
	for s, n := range seen {
		if n > 1 {
			t.Errorf("%s: %d times", s, n)
		}
	}
	// No fault; one fault, of 2 packets; two faults, of which the first may add a packet.
	want := map[int]int{}
	var count func(next, packets, depth int)
	count = func(next, packets, depth int) {
		want[depth]++
		for nth := next; nth < packets && depth < 3; nth++ {
			count(nth+1, packets+1, depth+1)
			count(nth+1, packets, depth+1)
		}
	}
	count(0, 2, 0)
	if all := want[0] + want[1] + want[2] + want[3]; len(seen) != all || seen["[{0 0} {1 0} {2 1}]"] != 1 {
		t.Errorf("%d schedules, want %d", len(seen), all)
	}
}
