package config

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const ms = time.Millisecond

// base is a built-in link without zero values, so that a lost value is detected.
func base() Link {
	return Link{
		Profile: protocol.V09, Transport: TransportUDP, OnPartial: PartialError,
		MaxMessageWords: 1, MaxDatagram: 1416, EagerLimit: 20, EagerCredit: 21,
		Pace:      Pace{2 * ms, 3},
		Deadlines: Deadlines{16 * ms, 17 * ms, 18 * ms},
		WarnAfter: 19 * ms,
	}
}

func TestLinkFor(t *testing.T) {
	const everything = `{profile: cloudfpga, transport: tcp, on_partial: retransmit, max_message_words: 346, max_datagram: 512,
  pace: {per_datagram: 20us, over_words: 21},
  deadlines: {clear: 34ms, ack: 35ms, data: 36ms}, warn_after: 37ms}`
	all := Link{
		Profile: protocol.CloudFPGA, Transport: TransportTCP, OnPartial: PartialRetransmit,
		MaxMessageWords: 346, MaxDatagram: 512, EagerLimit: 20, EagerCredit: 21,
		Pace:      Pace{20 * time.Microsecond, 21},
		Deadlines: Deadlines{34 * ms, 35 * ms, 36 * ms},
		WarnAfter: 37 * ms,
	}
	with := func(link Link, change func(*Link)) Link { change(&link); return link }

	for _, tc := range []struct {
		name, defaults, link string
		want                 Link
	}{
		{"nothing said", "{}", "{}", base()},
		{"defaults", everything, "{}", all},
		{"rank", "{}", everything, all},
		{"zero is a value", "{deadlines: {ack: 5s}, warn_after: 1s}", "{max_message_words: 0, deadlines: {ack: 0}}",
			with(base(), func(l *Link) {
				l.MaxMessageWords, l.Deadlines.Ack, l.WarnAfter = 0, 0, time.Second
			})},
		{"rank over defaults, leaf by leaf", everything, "{deadlines: {ack: 1s}, pace: {over_words: 9}}",
			with(all, func(l *Link) { l.Deadlines.Ack, l.Pace.OverWords = time.Second, 9 })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := mustParse(t, "ranks:\n  - {rank: 0, address: 127.0.0.1, run: host}\n  - {rank: 1, address: "+
				"127.0.0.2, peer: cpu, link: "+
				tc.link+"}\ndefaults: "+tc.defaults+"\n")
			if got := c.LinkFor(1, base()); got != tc.want {
				t.Errorf("got\n%+v\nwant\n%+v", got, tc.want)
			}
		})
	}
}

func TestLinkForOthers(t *testing.T) {
	c := mustParse(t, host+"defaults: {warn_after: 1s}\n")
	want := base()
	want.WarnAfter = time.Second
	for _, rank := range []int{0, 1} {
		if got := c.LinkFor(rank, base()); got != want {
			t.Errorf("rank %d, which has no link entry: %+v", rank, got)
		}
	}
}

func TestScalars(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "4096": 4096, "4097B": 4097, "64KiB": 64 << 10, "16 MiB": 16 << 20,
		"1GiB": 1 << 30} {
		var got, again Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q prints as %q, which reads as %d, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "1TiB", "8589934592GiB", "0x10"} {
		var s Size
		if s.UnmarshalText([]byte(text)) == nil {
			t.Errorf("size %q is %d", text, s)
		}
	}
	for text, want := range map[string]Mode{"0660": 0o660, "0o600": 0o600, "777": 0o777, "0": 0} {
		var m Mode
		if err := m.UnmarshalText([]byte(text)); err != nil || m != want {
			t.Errorf("mode %q: %v, %v", text, m, err)
		}
	}
}

// TestRanksWithLinks checks that RanksWithLinks changes the options of the given ranks, and not the configuration
// itself.
func TestRanksWithLinks(t *testing.T) {
	tcp, words := TransportTCP, 7
	cfg := New(Rank{Rank: 0}, Rank{Rank: 1, Link: &LinkOptions{Transport: &tcp}},
		Rank{Rank: 2, Link: &LinkOptions{MaxMessageWords: &words}}, Rank{Rank: 3})
	ranks := cfg.RanksWithLinks([]int{0, 1, 2}, func(l *LinkOptions) {
		if l.Transport == nil {
			l.Transport = new(TransportUDP)
		}
	})
	for rank, want := range []Transport{TransportUDP, TransportTCP, TransportUDP} {
		if l := ranks[rank].Link; l == nil || *l.Transport != want {
			t.Errorf("rank %d: %+v, want %v", rank, l, want)
		}
	}
	if l := ranks[2].Link; l.MaxMessageWords == nil || *l.MaxMessageWords != words {
		t.Errorf("rank 2 has lost an option: %+v", l)
	}
	if ranks[3].Link != nil || cfg.Ranks[0].Link != nil || cfg.Ranks[2].Link.Transport != nil {
		t.Errorf("options that were not to change: %+v, %+v, %+v", ranks[3].Link, cfg.Ranks[0].Link, cfg.Ranks[2].Link)
	}
}
