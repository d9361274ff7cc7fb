package extended

import (
	"flag"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/schedule"
)

var searchDepth = flag.Int("search-depth", 2,
	"how many faults a schedule of the search may have, one less in long exchanges; 3 takes some minutes")

// longExchanges have five to thirty times as many packets as the other exchanges.
var longExchanges = []string{"many", "little credit", "numbers go over", "small window", "canceled too late",
	"rendezvous"}

// searchedFaults are the possible faults of a packet in a schedule.
var searchedFaults = [][]fate{
	nil, {{delay: swapped}}, {{flip: 8*33 + 1}}, {{}, {}},
	{{delay: 5 * time.Millisecond}}, {{}, {delay: 5 * time.Millisecond}},
	{{delay: 30 * time.Millisecond}}, {{}, {delay: 30 * time.Millisecond}},
	{{delay: 150 * time.Millisecond}}, {{}, {delay: 150 * time.Millisecond}},
	{{delay: 250 * time.Millisecond}}, {{}, {delay: 250 * time.Millisecond}},
}

// TestSearch: under every schedule of faults, all messages of an exchange are received once, in order and intact, all
// sends end, and no state is left.
func TestSearch(t *testing.T) {
	var sum atomic.Int64
	t.Run("exchanges", func(t *testing.T) {
		for name, x := range exchanges {
			depth := *searchDepth
			if slices.Contains(longExchanges, name) {
				depth--
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				schedule.Each(len(searchedFaults), depth, func(faults []schedule.Fault) (packets int) {
					var sent [2]int
					_, err := runExchange(x.cfg, x.post, func(int, int, []byte) []fate {
						packets++
						for _, f := range faults {
							if f.Nth == packets-1 {
								return searchedFaults[f.Kind]
							}
						}
						return onTime
					}, &sent)
					if err != nil {
						t.Errorf("faults %v: %v", faults, err)
					}
					sum.Add(1)
					return packets
				})
			})
		}
	})
	t.Logf("%d schedules of up to %d faults", sum.Load(), *searchDepth)
}
