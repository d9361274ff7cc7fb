package impair

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

var three = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"),
	netip.MustParseAddr("fd00::3")}

func mustRule(t testing.TB, text string) Rule {
	t.Helper()
	r, err := ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"loss 5%":                    {Loss: 5},
		"loss 5%, duplicate 0.01%":   {Loss: 5, Duplicate: 0.01},
		"loss 20% burst 4":           {Loss: 20, Burst: 4},
		"delay 5ms":                  {Delay: Span{5 * time.Millisecond, 5 * time.Millisecond}},
		"reorder 1% late 0s~250ms":   {Reorder: 1, Late: Span{0, 250 * time.Millisecond}},
		"rate 10MiB queue 64KiB":     {Rate: 10 << 20, Queue: 64 << 10},
		"after 10s for 5s partition": {After: 10 * time.Second, For: 5 * time.Second, Partition: true},
		"packet ack,Payload reset 100% close 1% corrupt 1%": {Packets: 1<<4 | 1, Reset: 100, Close: 1, Corrupt: 1},
		"from 2 to 0,3-5,10.0.0.7 nth 3-7 loss 100%": {
			From: Ends{{First: 2, Last: 2}}, To: Ends{{}, {First: 3, Last: 5}, {Addr: netip.MustParseAddr("10.0.0.7")}},
			Nth: Range{3, 7}, Loss: 100},
	} {
		r := mustRule(t, text)
		if !reflect.DeepEqual(r, want) {
			t.Errorf("%q: %+v, want %+v", text, r, want)
		}
		if again := mustRule(t, r.String()); !reflect.DeepEqual(again, r) {
			t.Errorf("%q is printed as %q", text, r)
		}
	}
}

func TestParseRuleErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "no fault given: add one, such as loss 5%",
		"from 0":             "no fault given",
		"lost 5%":            `unknown word "lost" (did you mean "loss"?): the words are from, to, packet,`,
		"loss":               "loss has no value: it is followed by percent",
		"loss 5":             `loss: "5" is not a percentage: give more than 0% and at most 100%, as in 0.5%`,
		"loss 0%":            `loss: "0%" is not a percentage`,
		"loss NaN%":          `loss: "NaN%" is not a percentage`,
		"loss 100.1%":        `loss: "100.1%" is not a percentage`,
		"loss 5% loss 6%":    "loss appears twice: remove one of them",
		"burst 3 delay 1ms":  "burst without loss",
		"late 1ms loss 1%":   "late without duplicate and reorder",
		"queue 1KiB loss 1%": "queue without rate",
		"loss 90% burst 2": "loss 90% in bursts of 2 is not possible: bursts would have to follow each " +
			"other without a gap, so make them longer",
		"loss 1% burst 0.5":         `burst: "0.5" is not a burst length`,
		"delay 5":                   `delay: "5" is not a time from 0s to 24h: give a number with its unit, as in 5ms`,
		"delay 0s":                  `delay: "0s" has no effect: give a longer time`,
		"delay 5ms~1ms":             `delay: "5ms~1ms" is in descending order: write the shorter time first`,
		"delay 25h":                 `delay: "25h" is not a time from 0s to 24h`,
		"for 0s loss 1%":            `for: "0s" has no effect`,
		"rate 0 ":                   `rate: "0" is not 1 byte to 1024GiB`,
		"rate fast":                 `rate: "fast" is not a size`,
		"nth 0 loss 1%":             `nth: "0" is not a number or range from 1 up: write 3, or 3-7`,
		"nth 7-3 loss 1%":           `nth: "7-3" is not a number or range`,
		"from x loss 1%":            `from: "x" is not a rank, range of ranks or IP address: write 0, 2-5 or 10.0.0.7`,
		"to 0-1048577 loss 1%":      `to: "0-1048577" is not a rank`,
		"packet DATE partition":     `packet: "DATE" is not a packet type (did you mean "DATA"?): the types are PAYLOAD, SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK, ERROR`,
		"partition partition":       "partition appears twice",
		"duplicate 1%  corrupt 5%%": `corrupt: "5%%" is not a percentage`,
	} {
		_, err := ParseRule(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestCheck checks that a rule is rejected if the medium does not support its fault, or if a rank does not
// exist.
func TestCheck(t *testing.T) {
	for _, tt := range []struct{ rule, udp, tcp string }{
		{"loss 1%", "", "loss is not possible over tcp, which retransmits lost data: use delay, rate, corrupt, " +
			"partition, reset or close"},
		{"duplicate 1%", "", "duplicate is not possible over tcp"},
		{"reorder 1%", "", "reorder is not possible over tcp"},
		{"rate 1MiB queue 1KiB", "", "queue is not possible over tcp"},
		{"delay 1ms", "", ""},
		{"rate 1MiB", "", ""},
		{"corrupt 1%", "", ""},
		{"partition", "", ""},
		{"reset 1%", "reset is not possible over udp, which has no connections: use loss or partition", ""},
		{"close 1%", "close is not possible over udp", ""},
		{"from 0-2 to 10.0.0.2,fd00::3 delay 1ms", "", ""},
		{"from 3 delay 1ms", "from 3: there is no rank 3: the ranks are 0 to 2", "there is no rank 3"},
		{"to 10.0.0.9 delay 1ms", "to 10.0.0.9: no rank has the address 10.0.0.9", "no rank has the address"},
	} {
		r := mustRule(t, tt.rule)
		for m, want := range map[Medium]string{Datagrams: tt.udp, Streams: tt.tcp} {
			err := r.Check(m, three)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s over %v: %v, want %q", tt.rule, m, err, want)
			}
			if _, failed := New(Script{Rules: []Rule{r}}, m, three); (failed == nil) != (err == nil) {
				t.Errorf("%s over %v: New returns %v", tt.rule, m, failed)
			}
		}
	}
}

func TestScript(t *testing.T) {
	const file = "seed: 7\nrules:\n  - loss 5% duplicate 1% # a comment\n  - from 2 to 0 packet ACK nth 3 loss 100%\n"
	s, err := Parse(strings.NewReader(file), "f.yaml")
	if err != nil || s.Seed != 7 || len(s.Rules) != 2 ||
		s.Rules[1].String() != "from 2 to 0 packet ACK nth 3 loss 100%" {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"rules: [loss 5]":            `f.yaml:1: rules[0]: loss: "5" is not a percentage`,
		"rules:\n  - loss 5%\n  - x": `f.yaml:3: rules[1]: unknown word "x"`,
		"sed: 7":                     `f.yaml:1: unknown key "sed" (did you mean "seed"?)`,
		"rules: {loss: 5%}":          "f.yaml:1: rules: want a list here, not keys with values",
	} {
		if _, err := Parse(strings.NewReader(text), "f.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParseRule checks that no text makes the parser panic, and that every accepted rule can be printed, parsed
// again with the same result, and applied.
func FuzzParseRule(f *testing.F) {
	for _, text := range []string{
		"loss 5%, burst 3 duplicate 1% reorder 2% late 1ms~5ms",
		"from 0-1,10.0.0.1 to 2 packet DATA,ACK nth 3-7 after 1s for 5s partition",
		"delay 1us~24h corrupt 100% rate 1 queue 1GiB", "reset 1e-300% close 100%", "from ::1%a delay 1ns",
		"loss 99.999999999999% burst 1e6",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		again, err := ParseRule(r.String())
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("%q is printed as %q, which is %+v instead of %+v, %v", text, r, again, r, err)
		}
		for _, m := range []Medium{Datagrams, Streams} {
			im, err := New(Script{Rules: []Rule{r, r}}, m, three)
			if err != nil {
				continue
			}
			for i := range 20 {
				now := time.Duration(i) * time.Second
				if m == Streams {
					im.DecideStream(now, i%3, (i+1)%3, Kind(i%numKinds), i)
					continue
				}
				for _, d := range im.DecideDatagram(now, i%3, (i+1)%3, make([]byte, i)) {
					d.Apply(make([]byte, i))
				}
			}
		}
	})
}
