package extended

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// megabits is the rate of the line.
const megabits = 100

// measured is a flow of either kind.
type measured interface{ bytes() int64 }

// goodput starts flows, and returns the rate of each in the following span, in megabytes per second.
func (b *bottleneck) goodput(begin, span time.Duration, flows ...measured) []float64 {
	b.run(begin)
	rates := make([]float64, len(flows))
	for i, f := range flows {
		rates[i] = -float64(f.bytes())
	}
	b.run(begin + span)
	for i, f := range flows {
		rates[i] = (rates[i] + float64(f.bytes())) / span.Seconds() / 1e6
	}
	return rates
}

// meanQueue returns the average waiting time of a packet.
func (b *bottleneck) meanQueue() time.Duration {
	return (b.queued / time.Duration(max(b.count, 1))).Round(100 * time.Microsecond)
}

// TestGoodput compares with testdata/goodput.golden the rates of a flow, and of a model of a TCP with CUBIC and
// SACK, over the same bottleneck of 100 Mbit/s. -rewrite writes the file.
func TestGoodput(t *testing.T) {
	const golden = "testdata/goodput.golden"
	var text strings.Builder
	text.WriteString("round trip  loss  queue   extended        TCP  ratio  mean queue  of TCP\n")
	for _, ms := range []int{1, 20, 100, 200} {
		for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
			for _, products := range []float64{1, 10} {
				trip := time.Duration(ms) * time.Millisecond
				begin, span := 10*trip, max(40*trip, 500*time.Millisecond)
				if loss >= 0.01 {
					span = max(1000*trip, 2*time.Second) // losses per round trip are rare
				}
				b, f := line(trip, products, loss)
				ours := b.goodput(begin, span, f)[0]
				other := newBottleneck(megabits, trip, products, loss)
				tcp := newTCPFlow(other)
				tcp.begin(0)
				theirs := other.goodput(begin, span, tcp)[0]
				fmt.Fprintf(&text, "%7d ms %4.1f %% %2.0f BDP %5.2f MB/s %5.2f MB/s  %5.2f %11v %7v\n",
					ms, 100*loss, products, ours, theirs, ours/theirs, b.meanQueue(), other.meanQueue())
			}
		}
	}
	if rewrite := flag.Lookup("rewrite"); rewrite != nil && rewrite.Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("it is now\n%swant\n%s", text.String(), want)
	}
}

// line returns a bottleneck and a flow that begins at once.
func line(trip time.Duration, products, loss float64) (*bottleneck, *flow) {
	b := newBottleneck(megabits, trip, products, loss)
	f := newFlow(b, Config{}, 1)
	f.begin(0, 20)
	return b, f
}

// Two flows share a line whose queue fits one bandwidth-delay product, even if one begins later, and keep it busy.
func TestTwoFlowsShare(t *testing.T) {
	for _, x := range []struct {
		ms, later, trips int
		products         float64
	}{{1, 0, 1000, 1}, {1, 20, 3000, 1}, {1, 0, 3000, 10}, {20, 0, 200, 1}, {20, 10, 300, 1}, {100, 0, 60, 1}} {
		trip := time.Duration(x.ms) * time.Millisecond
		b, first := line(trip, x.products, 0)
		second := newFlow(b, Config{}, 7)
		second.begin(Instant(x.later)*trip, 20)
		rates := b.goodput(Instant(x.trips/2)*trip, Instant(x.trips)*trip, first, second)
		sum := rates[0] + rates[1]
		if share := rates[0] / sum; share < 0.4 || share > 0.6 || sum < 11 {
			t.Errorf("%+v: %.2f and %.2f MB/s", x, rates[0], rates[1])
		}
		if queue := b.meanQueue(); queue > Instant(float64(trip)*x.products)*9/10 {
			t.Errorf("%+v: the queue is %v", x, queue)
		}
	}
}

// Duplicates, and packets overtaken for a short time, are not mistaken for losses for long.
func TestDuplicatesAndReordering(t *testing.T) {
	for _, ms := range []int{1, 2, 20, 100} {
		trip := time.Duration(ms) * time.Millisecond
		begin, span := 20*trip, max(40*trip, 500*time.Millisecond)
		b, f := line(trip, 1, 0)
		plain := b.goodput(begin, span, f)[0]
		for _, x := range []struct{ dup, late float64 }{{0.05, 0}, {0, 0.05}, {0.05, 0.05}} {
			b, f := line(trip, 1, 0)
			b.dup, b.late, b.lateBy = x.dup, x.late, 2*time.Millisecond
			if rate := b.goodput(begin, span, f)[0]; rate < 0.9*plain {
				t.Errorf("round trip of %v, %+v: %.2f MB/s, and %.2f without; %+v",
					trip, x, rate, plain, f.conns[0].path.reordering)
			}
		}
	}
}

// At 1 Gbit/s and 100 ms, 8600 packets have to be in flight.
func TestGoodputOfFastLongPath(t *testing.T) {
	const trip = 100 * time.Millisecond
	b := newBottleneck(1000, trip, 1, 0)
	f := newFlow(b, Config{}, 1)
	f.begin(0, 60)
	if rate := b.goodput(15*trip, 5*trip, f)[0]; rate < 100 {
		st := f.conns[0].Stats()
		t.Errorf("%.1f MB/s, the window is %d, %d packets were lost", rate, st.Window, b.dropped)
	}
}
