package node

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func mustParse(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const ranks = `
ranks:
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, run: standin}
  - {rank: 2, address: 10.0.0.3, peer: fpga}
  - {rank: 3, address: 10.0.0.4, peer: cpu}
  - {rank: 4, address: 10.0.0.5, peer: software}
`

// link returns the link from rank local to rank remote in a configuration.
func link(t *testing.T, text string, local, remote int) Link {
	t.Helper()
	cfg := mustParse(t, text)
	l, err := NewLink(cfg, cfg.Rank(local), cfg.Rank(remote))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLink(t *testing.T) {
	for remote, peer := range map[int]handshake.PeerRules{
		1: handshake.FPGAPeer(1), 2: handshake.FPGAPeer(2), 3: handshake.CPUPeer(), 4: handshake.SoftwarePeer(),
	} {
		want := handshake.Config{Peer: peer, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(peer),
			MaxWords: maxMessageWords}
		l := link(t, ranks, 0, remote)
		if !reflect.DeepEqual(l.Handshake, want) || l.WarnAfter != 10*time.Second ||
			l.Transport != config.TransportUDP {
			t.Errorf("host to rank %d:\ngot  %+v\nwant %+v\n%+v", remote, l.Handshake, want, l.Link)
		}
	}

	t.Run("stand-in", func(t *testing.T) {
		want := handshake.Config{
			Shape: protocol.FPGAShape(true), Timing: handshake.DeployedFPGA(1), MaxWords: maxMessageWords,
			Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true},
		}
		for _, remote := range []int{0, 2, 3, 4} {
			if l := link(t, ranks, 1, remote); !reflect.DeepEqual(l.Handshake, want) {
				t.Errorf("to rank %d: %+v\n%+v", remote, l.Handshake, l.Link)
			}
		}
	})
	t.Run("stand-in without quirks", func(t *testing.T) {
		off := strings.Replace(ranks, "run: standin", "run: standin, quirks: off", 1)
		want := handshake.Config{Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.PeerRules{}),
			MaxWords: maxMessageWords}
		want.Timing.Ack.First = 225 * time.Millisecond // no earlier than an FPGA
		if l := link(t, off, 1, 0); !reflect.DeepEqual(l.Handshake, want) {
			t.Errorf("%+v", l.Handshake)
		}
	})
	t.Run("stand-in with default timing", func(t *testing.T) {
		l := link(t, strings.Replace(ranks, "run: standin", "run: standin, timing: default", 1), 1, 0)
		want := handshake.DefaultTiming(handshake.PeerRules{})
		want.Ack.First = 225 * time.Millisecond
		if h := l.Handshake; h.Timing != want ||
			h.Quirks != (handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true}) {
			t.Errorf("%+v", h)
		}
	})
	t.Run("host with deployed timing", func(t *testing.T) {
		text := strings.Replace(ranks, "run: host", "run: host, timing: deployed", 1) +
			"defaults: {deadlines: {ack: 3s}}\n"
		if l := link(t, text, 0, 2); l.Handshake.Timing != handshake.DeployedCPU() ||
			l.Handshake.Peer != handshake.FPGAPeer(2) {
			t.Errorf("%+v", l.Handshake)
		}
	})
	t.Run("software stand-in", func(t *testing.T) {
		l := link(t, strings.Replace(ranks, "run: standin", "run: standin, peer: software", 1), 1, 2)
		if l.Handshake.Peer != handshake.FPGAPeer(2) || l.Handshake.Quirks != (handshake.Quirks{}) {
			t.Errorf("%+v", l.Handshake)
		}
	})
	t.Run("overrides", func(t *testing.T) {
		l := link(t, ranks+`
defaults:
  on_partial: retransmit
  profile: v0.9
  warn_after: 1s
  pace: {per_datagram: 2us, over_words: 10}
  deadlines: {clear: 1s, ack: 2s, data: 3s}
`, 0, 4)
		want := handshake.DefaultTiming(handshake.PeerRules{})
		want.ClearDeadline, want.AckDeadline, want.DataDeadline = time.Second, 2*time.Second, 3*time.Second
		if l.Handshake.Timing != want || l.Handshake.OnPartial != handshake.RetransmitPartial ||
			l.Handshake.Profile != protocol.V09 || l.Pace.OverWords != 10 {
			t.Errorf("%+v", l.Handshake)
		}
	})
	t.Run("large kernel", func(t *testing.T) {
		l := link(t, strings.Replace(ranks, "run: standin", "run: standin, kernel_options: {words: 100000000}", 1), 0,
			1)
		if l.Handshake.MaxWords != 100000000 {
			t.Errorf("at most %d words", l.Handshake.MaxWords)
		}
		if l.Handshake.PeerWords != 100000000 || link(t, ranks, 0, 1).Handshake.PeerWords != 0 {
			t.Errorf("the peer takes %d words", l.Handshake.PeerWords)
		}
	})
}

// TestTimeScale checks that times that a slow simulation of a role can affect are scaled at both ends of its links, and
// on no other links.
func TestTimeScale(t *testing.T) {
	const text = `
defaults: {warn_after: 2s, deadlines: {clear: 3s}}
ranks:
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, run: standin, kernel: "rtl:time_scale=5 ./role", timing: default}
  - {rank: 2, address: 10.0.0.3, run: standin, timing: default}
`
	for _, tt := range []struct {
		local, remote int
		scale         time.Duration
	}{{0, 1, 5}, {1, 0, 5}, {2, 1, 5}, {1, 2, 5}, {0, 2, 1}, {2, 0, 1}} {
		l := link(t, text, tt.local, tt.remote)
		ack := handshake.DefaultTiming(l.Handshake.Peer).AckDeadline
		if l.WarnAfter != 2*time.Second*tt.scale || l.Handshake.Timing.ClearDeadline != 3*time.Second*tt.scale ||
			l.Deadlines.Ack != ack {
			t.Errorf("link of rank %d to %d: %v, %v, %v", tt.local, tt.remote, l.WarnAfter,
				l.Handshake.Timing.ClearDeadline, l.Deadlines.Ack)
		}
	}
}

// TestTimeScaleOfMPE checks that all timeouts are scaled for a rank whose MPE is simulated too.
func TestTimeScaleOfMPE(t *testing.T) {
	const text = `
ranks:
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, run: standin, kernel: "rtl-net:time_scale=5 ./role"}
`
	times := func(b handshake.Backoff, scale time.Duration) handshake.Backoff {
		return handshake.Backoff{First: b.First * scale, Step: b.Step * scale, Retransmissions: b.Retransmissions,
			Interval: b.Interval * scale}
	}
	own := handshake.DefaultTiming(handshake.FPGAPeer(1))
	want := handshake.Timing{
		Clear: times(own.Clear, 5), Ack: times(own.Ack, 5), Data: times(own.Data, 5),
		AckDeadline: 5 * own.AckDeadline, DataDeadline: 5 * own.DataDeadline, FragmentGap: 5 * own.FragmentGap,
	}
	if l := link(t, text, 0, 1); l.Handshake.Timing != want || l.Handshake.Peer != handshake.FPGAPeer(1) {
		t.Errorf("%+v, want %+v", l.Handshake, want)
	}
	if l := link(t, strings.Replace(text, "time_scale=5 ", "", 1), 0, 1); l.Handshake.Timing != own {
		t.Errorf("without a scale: %+v", l.Handshake.Timing)
	}
}

func TestLinkErrors(t *testing.T) {
	for _, tt := range []struct{ name, zero, one, want string }{
		{"transport", "run: host, link: {transport: udp}", "run: host, link: {transport: tcp}",
			"link.transport: ranks 0 and 1 have different values"},
		{"profile", "run: host, link: {profile: v0.9}", "run: host, link: {profile: cloudfpga}",
			"link.profile: ranks 0 and 1 have different values"},
		{"datagram", "run: host, link: {max_datagram: 80}", "run: host, link: {max_datagram: 88}",
			"link.max_datagram: ranks 0 and 1 have different values"},
		{"large datagrams", "run: host", "run: host, link: {max_datagram: 1424}",
			"ranks 0 and 1: 1424 exceeds the limit of a rank over UDP: use 1416 or less"},
		{"a simulated MPE over tcp", "run: host", "run: standin, kernel: \"rtl-net:./x\", link: {transport: tcp}",
			"link.transport: ranks 0 and 1: kernel rtl-net exchanges datagrams, and this link is tcp: use udp"},
		{"small datagrams to an FPGA", "run: host", "peer: fpga, link: {max_datagram: 1000}",
			"1000, but deployed nodes (peer: fpga) split messages at 1416"},
	} {
		cfg := mustParse(t, "ranks:\n  - {rank: 0, address: 10.0.0.1, "+tt.zero+"}\n  - {rank: 1, address: 10.0.0.2, "+
			tt.one+"}\n")
		_, err := Plan(cfg, cfg.Rank(0))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestPaceTowardsDeployedNodes checks the pace that their memory and sockets can sustain, from a host and from a
// stand-in.
func TestPaceTowardsDeployedNodes(t *testing.T) {
	for local := range 2 {
		for remote, want := range map[int]config.Pace{
			2: {PerDatagram: 1100 * time.Nanosecond, OverWords: 65536},
			3: {PerDatagram: 10 * time.Microsecond, OverWords: 65536}, 4: {},
		} {
			if got := link(t, ranks, local, remote).Pace; got != want {
				t.Errorf("from rank %d to rank %d: %+v, want %+v", local, remote, got, want)
			}
		}
	}
}
