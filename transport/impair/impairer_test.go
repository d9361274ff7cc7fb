package impair

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

func newImpairer(t testing.TB, m Medium, seed int, rules ...string) *Impairer {
	t.Helper()
	s := Script{Seed: seed}
	for _, text := range rules {
		s.Rules = append(s.Rules, mustRule(t, text))
	}
	im, err := New(s, m, three)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func packet(k Kind) []byte {
	if k == Payload {
		return make([]byte, 100)
	}
	return protocol.CloudFPGA.Append(nil, protocol.Header{Type: protocol.Type(k)})
}

const ack = Kind(protocol.Ack)

func TestKindOf(t *testing.T) {
	for k := range Kind(numKinds) {
		if got := KindOf(packet(k)); got != k {
			t.Errorf("%v is %v", k, got)
		}
	}
	ext := protocol.AppendExtended(nil, &protocol.ExtHeader{Type: protocol.Ack, Call: protocol.RecvInt, Session: 1},
		nil)
	v09 := protocol.V09.Append(nil, protocol.Header{Type: protocol.Ack, Tag: 7})
	for _, b := range [][]byte{ext, v09} {
		if KindOf(b) != ack {
			t.Errorf("%x is %v", b, KindOf(b))
		}
	}
	for _, b := range [][]byte{nil, packet(ack)[:31], make([]byte, 32)} {
		if KindOf(b) != Payload {
			t.Errorf("%x is %v", b, KindOf(b))
		}
	}
}

// sent is a datagram sent in a scripted run: its time, direction and type.
type sent struct {
	at       time.Duration
	from, to int
	kind     Kind
}

// deliveries returns the delivery times of each datagram, with "!" if the datagram was corrupted.
func deliveries(im *Impairer, all []sent) []string {
	var got []string
	for _, x := range all {
		var times []string
		for _, d := range im.DecideDatagram(x.at, x.from, x.to, packet(x.kind)) {
			s := d.After.String()
			if d.Flip >= 0 {
				s += "!"
			}
			times = append(times, s)
		}
		got = append(got, fmt.Sprint(times))
	}
	return got
}

// TestRules tests each fault and each condition whose outcome is certain.
func TestRules(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	three := []sent{{0, 0, 1, ack}, {s, 0, 1, ack}, {2 * s, 0, 1, ack}}
	for _, tt := range []struct {
		name  string
		rules []string
		sent  []sent
		want  []string
	}{
		{"no rules", nil, three[:1], []string{"[0s]"}},
		{"loss", []string{"loss 100%"}, three[:1], []string{"[]"}},
		{"loss of all in bursts", []string{"loss 100% burst 3"}, three, []string{"[]", "[]", "[]"}},
		{"duplicate", []string{"duplicate 100%"}, three[:1], []string{"[0s 0s]"}},
		{"late duplicate", []string{"duplicate 100% late 5ms"}, three[:1], []string{"[0s 5ms]"}},
		{"reorder", []string{"reorder 100%"}, three[:1], []string{"[2ms]"}},
		{"reorder by a time", []string{"reorder 100% late 7ms"}, three[:1], []string{"[7ms]"}},
		{"delay", []string{"delay 3ms"}, three[:1], []string{"[3ms]"}},
		{"corrupt", []string{"corrupt 100%"}, three[:1], []string{"[0s!]"}},
		{"partition", []string{"after 1s for 1s partition"}, three, []string{"[0s]", "[]", "[0s]"}},
		{"partition without an end", []string{"after 1s partition"}, three, []string{"[0s]", "[]", "[]"}},
		{"rate: 32 bytes take 1 s", []string{"rate 32"},
			[]sent{{0, 0, 1, ack}, {0, 0, 1, ack}, {1500 * ms, 0, 1, ack}, {9 * s, 0, 1, ack}},
			[]string{"[1s]", "[2s]", "[1.5s]", "[1s]"}},
		{"a full queue", []string{"rate 32 queue 64"},
			[]sent{{0, 0, 1, ack}, {0, 0, 1, ack}, {0, 0, 1, ack}, {s, 0, 1, ack}},
			[]string{"[1s]", "[2s]", "[]", "[2s]"}},
		{"the third ACK from rank 2 to rank 0", []string{"from 2 to 0 packet ACK nth 3 loss 100%"},
			[]sent{{0, 2, 0, ack}, {0, 0, 2, ack}, {0, 2, 1, ack}, {0, 2, 0, Payload}, {0, 2, 0, ack}, {0, 2, 0, ack},
				{0, 2, 0, ack}},
			[]string{"[0s]", "[0s]", "[0s]", "[0s]", "[0s]", "[]", "[0s]"}},
		{"numbers are by direction", []string{"nth 2 loss 100%"},
			[]sent{{0, 0, 1, ack}, {0, 1, 0, ack}, {0, 1, 0, ack}, {0, 0, 1, ack}},
			[]string{"[0s]", "[0s]", "[]", "[]"}},
		{"by address", []string{"from 10.0.0.2 loss 100%"}, []sent{{0, 1, 0, ack}, {0, 0, 1, ack}},
			[]string{"[]", "[0s]"}},
		{"rules act one after the other",
			[]string{"duplicate 100%", "nth 2 loss 100%", "delay 1ms", "duplicate 100% late 1ms"}, three[:1],
			[]string{"[1ms 2ms]"}},
		{"a later rule does not count lost packets", []string{"nth 1 loss 100%", "nth 1 delay 1ms"}, three,
			[]string{"[]", "[1ms]", "[0s]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := deliveries(newImpairer(t, Datagrams, 1, tt.rules...), tt.sent); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestDecideStream tests the same for a stream, which keeps its order.
func TestDecideStream(t *testing.T) {
	const ms = time.Millisecond
	type piece struct {
		at   time.Duration
		kind Kind
	}
	for _, tt := range []struct {
		name   string
		rules  []string
		pieces []piece
		want   []Fate
	}{
		{"delay, and later packets cannot overtake", []string{"nth 1 delay 5ms"},
			[]piece{{0, ack}, {2 * ms, ack}, {9 * ms, ack}},
			[]Fate{{Delivery{5 * ms, -1}, 0}, {Delivery{3 * ms, -1}, 0}, {Delivery{0, -1}, 0}}},
		{"a partition stalls until its end", []string{"after 1ms for 5ms partition"},
			[]piece{{0, ack}, {2 * ms, ack}, {6 * ms, ack}},
			[]Fate{{Delivery{0, -1}, 0}, {Delivery{4 * ms, -1}, 0}, {Delivery{0, -1}, 0}}},
		{"or forever", []string{"partition"}, []piece{{0, ack}}, []Fate{{Delivery{Forever, -1}, 0}}},
		{"rate", []string{"rate 1000"}, []piece{{0, ack}, {0, ack}},
			[]Fate{{Delivery{32 * ms, -1}, 0}, {Delivery{64 * ms, -1}, 0}}},
		{"reset at the second ACK", []string{"packet ACK nth 2 reset 100%"},
			[]piece{{0, ack}, {0, Payload}, {0, ack}, {0, ack}},
			[]Fate{{Delivery{0, -1}, 0}, {Delivery{0, -1}, 0}, {Delivery{0, -1}, Resets}, {Delivery{0, -1}, 0}}},
		{"close", []string{"close 100%"}, []piece{{0, ack}}, []Fate{{Delivery{0, -1}, Closes}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			im := newImpairer(t, Streams, 1, tt.rules...)
			for i, p := range tt.pieces {
				if got := im.DecideStream(p.at, 0, 1, p.kind, 32); got != tt.want[i] {
					t.Errorf("piece %d: %+v, want %+v", i, got, tt.want[i])
				}
			}
		})
	}
	im := newImpairer(t, Streams, 1, "rate 1")
	im.DecideStream(0, 0, 1, ack, 32)
	im.NewConnection(0, 1)
	if got := im.DecideStream(0, 0, 1, ack, 1); got.After != time.Second {
		t.Errorf("on a new connection: %v", got.After)
	}
}

// TestOdds checks that shares and burst lengths are as the script specifies, within five standard deviations.
func TestOdds(t *testing.T) {
	const n = 200_000
	for _, tt := range []struct {
		rule  string
		share float64
		count func(Count) uint64
	}{
		{"loss 5%", 0.05, func(c Count) uint64 { return c.Lost }},
		{"loss 20% burst 5", 0.2, func(c Count) uint64 { return c.Lost }},
		{"duplicate 1%", 0.01, func(c Count) uint64 { return c.Duplicated }},
		{"reorder 2%", 0.02, func(c Count) uint64 { return c.Reordered }},
		{"corrupt 0.1%", 0.001, func(c Count) uint64 { return c.Corrupted }},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			im := newImpairer(t, Datagrams, 3, tt.rule)
			bursts, lost := 0, false
			for range n {
				gone := len(im.DecideDatagram(0, 0, 1, packet(ack))) == 0
				if gone && !lost {
					bursts++
				}
				lost = gone
			}
			c := im.Report()[0].Count
			spread := 5 * math.Sqrt(tt.share*(1-tt.share)/n)
			mean := 1.0
			if im.rules[0].Burst > 0 {
				mean = im.rules[0].Burst
				spread *= math.Sqrt(2 * mean)
			}
			if got := float64(tt.count(c)) / n; math.Abs(got-tt.share) > spread {
				t.Errorf("%v of all, want %v ± %v", got, tt.share, spread)
			}
			if im.rules[0].Burst > 0 {
				if got := float64(c.Lost) / float64(bursts); math.Abs(got-mean) > 0.2 {
					t.Errorf("bursts of %v on average, want %v", got, mean)
				}
			}
		})
	}
}

// TestProperties checks, for random scripts and traffic, that the delivered packets are the sent ones plus
// duplicates minus losses. It also checks that the same seed leads to the same decisions in one direction,
// whatever happens in the others.
func TestProperties(t *testing.T) {
	for seed := range 300 {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		var rules []string
		for range rng.IntN(4) {
			rules = append(rules, []string{
				"loss 10%", "loss 30% burst 3", "duplicate 20% late 0s~5ms", "reorder 10%", "corrupt 50%",
				"delay 1ms~9ms", "rate 100KiB queue 2KiB",
				"packet ACK loss 50%", "from 0 nth 3-9 loss 100%", "after 20ms for 30ms partition",
				"to 2 duplicate 100%",
			}[rng.IntN(11)])
		}
		run := func(others bool) (log []string, sum Count, delivered uint64) {
			rng := rand.New(rand.NewPCG(uint64(seed), 10))
			im := newImpairer(t, Datagrams, seed, rules...)
			for i := range 200 {
				from, kind := rng.IntN(3), Kind(rng.IntN(numKinds))
				to := (from + 1 + rng.IntN(2)) % 3
				if !others && (from != 0 || to != 1) {
					continue
				}
				out := im.DecideDatagram(time.Duration(i)*time.Millisecond, from, to, packet(kind))
				if from == 0 && to == 1 {
					log = append(log, fmt.Sprint(out))
				}
				for _, d := range out {
					delivered++
					if d.After < 0 || d.Flip >= 8*len(packet(kind)) {
						t.Fatalf("seed %d: %+v", seed, d)
					}
				}
			}
			for _, row := range im.Report() {
				sum.Add(row.Count)
			}
			return log, sum, delivered
		}
		all, sum, delivered := run(true)
		if delivered != sum.Packets+sum.Duplicated-sum.Lost-sum.Overflowed {
			t.Errorf("seed %d, rules %q: %d delivered, but %+v", seed, rules, delivered, sum)
		}
		if alone, _, _ := run(false); !slices.Equal(all, alone) {
			t.Errorf("seed %d, rules %q: other directions change\n%v to\n%v", seed, rules, alone, all)
		}
	}
}

// TestSeeds checks that a different seed leads to different decisions.
func TestSeeds(t *testing.T) {
	all := make([]sent, 100)
	for i := range all {
		all[i] = sent{0, 0, 1, ack}
	}
	one, two := deliveries(newImpairer(t, Datagrams, 1, "loss 50%"), all),
		deliveries(newImpairer(t, Datagrams, 2, "loss 50%"), all)
	if slices.Equal(one, two) {
		t.Error("seeds 1 and 2 make the same decisions")
	}
}

func TestApply(t *testing.T) {
	b := []byte{0, 0}
	Delivery{Flip: 11}.Apply(b)
	Delivery{Flip: -1}.Apply(b)
	if b[0] != 0 || b[1] != 8 {
		t.Errorf("%x", b)
	}
}

func TestQueue(t *testing.T) {
	var q Queue[int]
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	if due, ok := q.NextDue(); ok {
		t.Errorf("an empty queue is due at %v", due)
	}
	for value, due := range []int{3, 1, 2, 1, 3, 1} {
		q.Push(at(due), value)
	}
	var got []int
	for now := range 5 {
		if due, ok := q.NextDue(); ok != (now <= 3) || ok && !due.Equal(at(max(now, 1))) {
			t.Errorf("at %d: due at %v, %v", now, due, ok)
		}
		for v, ok := q.Pop(at(now)); ok; v, ok = q.Pop(at(now)) {
			got = append(got, now*10+v)
		}
	}
	if want := []int{11, 13, 15, 22, 30, 34}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
