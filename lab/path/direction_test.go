package path

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// kilo describes a path that sends a packet of 1000 bytes in 1 ms, and delivers it 10 ms later.
var kilo = Config{RTT: 20 * ms, Rate: 1_000_000, MTU: 1500}

var epoch = time.Unix(0, 0)

func mustDirection(t testing.TB, c Config, number int) *Direction {
	t.Helper()
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDirection(c, number, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// numbered returns a packet that begins with its number.
func numbered(number, length int) []byte {
	b := make([]byte, length)
	binary.BigEndian.PutUint32(b, uint32(number))
	return b
}

func numberOf(b []byte) int { return int(binary.BigEndian.Uint32(b)) }

// drain delivers all packets, each at the time when it is due. It returns them in the form "number@time".
func drain(d *Direction) (all []string) {
	for due, ok := d.Due(); ok; due, ok = d.Due() {
		if b, early := d.Deliver(due.Add(-1)); early {
			all = append(all, fmt.Sprintf("%d early", numberOf(b)))
		}
		b, _ := d.Deliver(due)
		all = append(all, fmt.Sprintf("%d@%v", numberOf(b), due.Sub(epoch)))
	}
	return all
}

// TestDeliveries checks the times at which packets leave the path.
func TestDeliveries(t *testing.T) {
	with := func(change func(*Config)) Config {
		c := kilo
		change(&c)
		return c
	}
	type sent struct {
		at     time.Duration
		length int
	}
	three := []sent{{0, 1000}, {0, 1000}, {0, 1000}}
	for _, tt := range []struct {
		name string
		c    Config
		sent []sent
		want string
	}{
		{"a packet takes its length by the rate, and half a round trip", kilo, []sent{{5 * ms, 500}}, "0@15.5ms"},
		{"packets wait for each other", kilo, three, "0@11ms 1@12ms 2@13ms"},
		{"packets that were sent no longer count", kilo, []sent{{0, 1000}, {9 * ms, 1000}}, "0@11ms 1@20ms"},
		{"a queue of two packets, one of which is under transmission", with(func(c *Config) { c.Queue = 2000 }), three,
			"0@11ms 1@12ms"},
		{"accepts again when the first packet has been sent", with(func(c *Config) { c.Queue = 2000 }),
			[]sent{{0, 1000}, {0, 1000}, {ms, 1000}, {ms, 1}}, "0@11ms 1@12ms 2@13ms"},
		{"a short packet fits where a long one does not", with(func(c *Config) { c.Queue = 1500 }),
			[]sent{{0, 1000}, {0, 1000}, {0, 500}}, "0@11ms 2@11.5ms"},
		{"loss", with(func(c *Config) { c.Loss = 100 }), three, ""},
		{"lost packets leave the queue", with(func(c *Config) { c.Loss = 100; c.Queue = 1000 }), three, ""},
		{"duplicates", with(func(c *Config) { c.Duplicate = 100 }), three[:2], "0@11ms 0@11ms 1@12ms 1@12ms"},
		{"late duplicates", with(func(c *Config) { c.Duplicate = 100; c.Late = 2 * ms }), three[:2],
			"0@11ms 1@12ms 0@13ms 1@14ms"},
		{"late packets", with(func(c *Config) { c.Reorder = 100; c.Late = 2 * ms }), three[:2], "0@13ms 1@14ms"},
		{"no delay", with(func(c *Config) { c.RTT = 0 }), three, "0@1ms 1@2ms 2@3ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := mustDirection(t, tt.c, 0)
			for i, s := range tt.sent {
				d.Send(epoch.Add(s.at), numbered(i, max(s.length, 4)))
			}
			if got := strings.Join(drain(d), " "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestBytes checks that packets arrive unchanged, whatever the buffers contained before.
func TestBytes(t *testing.T) {
	c := kilo
	c.Duplicate, c.Reorder, c.Late, c.Queue = 30, 30, 3*ms, 1<<20
	d := mustDirection(t, c, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	sent := make(map[int][]byte)
	arrived := 0
	now := epoch
	for i := range 2000 {
		b := numbered(i, 4+rng.IntN(c.MTU-3))
		for k := 4; k < len(b); k++ {
			b[k] = byte(rng.Uint32())
		}
		sent[i] = bytes.Clone(b)
		d.Send(now, b)
		clear(b) // the caller may reuse its buffer
		for got, ok := d.Deliver(now); ok; got, ok = d.Deliver(now) {
			arrived++
			if !bytes.Equal(got, sent[numberOf(got)]) {
				t.Fatalf("packet %d is another one", numberOf(got))
			}
		}
		now = now.Add(ms)
	}
	if arrived < 2000 {
		t.Errorf("%d packets were delivered", arrived)
	}
}

// TestSaturated sends at twice the rate of the path. It checks that the queue fills, that packets leave at the rate of
// the path, and that the counts agree.
func TestSaturated(t *testing.T) {
	d := mustDirection(t, kilo, 0)
	var bytes, packets int
	for i := range 2000 {
		now := epoch.Add(time.Duration(i) * ms / 2)
		d.Send(now, numbered(i, 1000))
		for b, ok := d.Deliver(now); ok; b, ok = d.Deliver(now) {
			bytes, packets = bytes+len(b), packets+1
		}
	}
	// One packet per millisecond is delivered for one second, except for the packets of the last 10 ms, which are in
	// flight.
	if bytes != 989_000 && bytes != 990_000 {
		t.Errorf("%d bytes have passed", bytes)
	}
	got := d.traffic()
	// Rate times RTT is 20,000 bytes. The queue holds 16 packets of the MTU, which are longer: 24,000 bytes, or 24 ms.
	if got.Packets != 2000 || got.Bytes != 2_000_000 || got.Overflowed < 970 || got.Overflowed > 980 || got.Lost != 0 ||
		got.QueueMean < 22 || got.QueueMean > 24 || got.QueueP99 < 23 || got.QueueP99 > 24 || got.LateMean != 0 ||
		got.LateP99 != 0 {
		t.Errorf("%+v", got)
	}
}

// TestLateness checks that Deliver counts how late packets are.
func TestLateness(t *testing.T) {
	d := mustDirection(t, kilo, 0)
	for i := range 100 {
		d.Send(epoch, numbered(i, 10))
	}
	for range 100 {
		due, _ := d.Due()
		d.Deliver(due.Add(200 * time.Microsecond))
	}
	if got := d.traffic(); got.LateMean != 200 || got.LateP99 != 200 {
		t.Errorf("%+v", got)
	}
}

// TestSeeds checks that the seed, the direction and the packet numbers determine which packets are lost, and the time
// does not.
func TestSeeds(t *testing.T) {
	c := kilo
	c.Loss, c.Queue = 20, 1<<20
	lost := func(seed, number int, gap time.Duration) (all []int) {
		c.Seed = seed
		d := mustDirection(t, c, number)
		for i := range 200 {
			before := d.traffic().Lost
			d.Send(epoch.Add(time.Duration(i)*gap), numbered(i, 100))
			if d.traffic().Lost > before {
				all = append(all, i)
			}
		}
		return all
	}
	first := lost(1, 0, ms)
	if len(first) < 20 || len(first) > 60 {
		t.Errorf("%d packets of 200 are lost", len(first))
	}
	if again := lost(1, 0, 7*ms); !slices.Equal(again, first) {
		t.Errorf("%v, and then %v", first, again)
	}
	for _, x := range [][2]int{{1, 1}, {2, 0}, {0, 1}} {
		if slices.Equal(lost(x[0], x[1], ms), first) {
			t.Errorf("seed %d and direction %d lose the same packets", x[0], x[1])
		}
	}
}

func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		queue  int
		says   string
	}{
		{"one bandwidth-delay product", func(c *Config) { c.Rate, c.RTT = 12_500_000, 100*ms }, 1_250_000, ""},
		{"at least 16 packets", func(c *Config) { c.RTT = 0 }, 24_000, ""},
		{"as given", func(c *Config) { c.Queue = 7 }, 7, ""},
		{"rate", func(c *Config) { c.Rate = 0 }, 0, "rate of 0 bytes/s: give 1 to 10737418240"},
		{"round trip", func(c *Config) { c.RTT = -1 }, 0, "round trip of -1ns: give 0s to 10s"},
		{"MTU", func(c *Config) { c.MTU = 70000 }, 0, "MTU of 70000 bytes: give 576 to 65535"},
		{"queue", func(c *Config) { c.Queue = -1 }, 0, "queue of -1 bytes: give 0 or more"},
		{"lateness", func(c *Config) { c.Late = time.Hour }, 0, "lateness of 1h0m0s: give 0s to 10s"},
		{"loss", func(c *Config) { c.Loss = 101 }, 0, "101 % of the packets: give 0 to 100"},
	} {
		c := kilo
		tt.change(&c)
		got, err := c.withDefaults()
		switch {
		case tt.says == "" && (err != nil || got.Queue != tt.queue):
			t.Errorf("%s: %d, %v", tt.name, got.Queue, err)
		case tt.says != "" && (err == nil || err.Error() != tt.says || c.Check() == nil):
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestHistogram(t *testing.T) {
	h := newHistogram(4000)
	if h.mean() != 0 || h.quantile(0.99) != 0 {
		t.Error("an empty histogram has values")
	}
	for i := range 100 {
		h.add(10 * i)
	}
	h.add(-5)   // counts as 0
	h.add(9999) // counts as 4000 in quantiles
	if got, want := h.mean(), (49_500.0+9999)/102; got != want {
		t.Errorf("mean %v, want %v", got, want)
	}
	for share, want := range map[float64]float64{0: 0, 0.5: 500, 0.9: 900, 1: 4000, 0.999: 4000} {
		if got := h.quantile(share); got != want {
			t.Errorf("quantile %v is %v, want %v", share, got, want)
		}
	}
}
