package capi

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/lease"
)

// TestLeaseIsDue checks that a program whose leases are hardly used is offered a lease after each call of its loop, and
// seldom.
func TestLeaseIsDue(t *testing.T) {
	const calls = 10_000
	for period := 1; period <= 8; period++ {
		x, tried, attempts := lessor{block: new(lease.Block)}, make([]bool, period), 0
		for i := range calls {
			if x.isDue() {
				tried[i%period] = true
				attempts++
			}
		}
		for i := range tried {
			if !tried[i] {
				t.Errorf("loop of %d calls: no lease after call %d", period, i)
			}
		}
		if most := calls>>maxWaste + 2*maxWaste; attempts > most {
			t.Errorf("loop of %d calls: %d leases, want at most %d", period, attempts, most)
		}
	}
}
