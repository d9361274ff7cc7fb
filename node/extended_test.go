package node

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/transport/shm"
)

// TestTransportWithinAHost checks that ranks on one host share memory, unless the configuration sets another transport
// or the link has another profile. Both ends must come to the same result.
func TestTransportWithinAHost(t *testing.T) {
	const ranks = `
ranks:
  - {rank: 0, address: "%s:1000", run: host%s}
  - {rank: 1, address: "%s:2000", %s}
defaults: {%s}
`
	local := "shm"
	if runtime.GOOS != "linux" {
		local = "udp"
	}
	for _, tt := range []struct {
		name, zero, one, own, rest, defaults string
		transport                            string
		payload                              int
		plain, reliable                      bool
	}{
		{"loopback", "127.0.0.1", "127.1.2.3", "", "peer: software", "profile: extended", local, 32768, true, true},
		{"loopback, IPv6", "[::1]", "[::1]", "", "peer: software", "profile: extended", local, 32768, true, true},
		{"one address", "10.0.0.1", "10.0.0.1", "", "run: host", "profile: extended", local, 32768, true, true},
		{"two addresses", "10.0.0.1", "10.0.0.2", "", "run: host", "profile: extended", "udp", maxExtDatagram - 80,
			false, false},
		{"two addresses, and yet", "10.0.0.1", "10.0.0.2", "", "run: host", "profile: extended, transport: shm", "shm",
			32768, true, true},
		{"UDP by default", "127.0.0.1", "127.0.0.2", "", "run: host", "profile: extended, transport: udp", "udp",
			maxExtDatagram - 80, true, false},
		{"large datagrams", "127.0.0.1", "127.0.0.2", "", "run: host",
			"profile: extended, transport: udp, max_datagram: 65504", "udp", 65424, true, false},
		{"large datagrams between hosts", "10.0.0.1", "10.0.0.2", "", "run: host",
			"profile: extended, max_datagram: 9000", "udp", 8920, false, false},
		{"TCP", "127.0.0.1", "127.0.0.2", "", "run: host, link: {transport: tcp}", "profile: extended", "tcp", 32768,
			true, true},
		{"TCP between hosts", "10.0.0.1", "10.0.0.2", "", "run: host, link: {transport: tcp}", "profile: extended",
			"tcp", 32768, false, true},
		{"UDP by the rank's own entry", "127.0.0.1", "127.0.0.2", ", link: {transport: udp}", "run: host",
			"profile: extended", "udp", maxExtDatagram - 80, true, false},
		{"another profile", "127.0.0.1", "127.0.0.2", "", "run: host", "profile: cloudfpga", "udp", 0, false, false},
	} {
		cfg := mustParse(t, fmt.Sprintf(ranks, tt.zero, tt.own, tt.one, tt.rest, tt.defaults))
		for _, way := range [][2]int{{0, 1}, {1, 0}} {
			l, err := NewLink(cfg, cfg.Rank(way[0]), cfg.Rank(way[1]))
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if string(l.Transport) != tt.transport {
				t.Errorf("%s, from rank %d: %s", tt.name, way[0], l.Transport)
			}
			x := l.Extended
			if x == nil {
				if tt.payload != 0 {
					t.Errorf("%s: it is not extended", tt.name)
				}
				continue
			}
			reliable := x.Timing.MinRTO == extended.DefaultTiming(true).MinRTO
			if x.MaxPayload != tt.payload || x.HeaderChecksum != tt.plain || reliable != tt.reliable {
				t.Errorf("%s, from rank %d: %+v", tt.name, way[0], x)
			}
			if want := map[bool]int{true: sharedEagerLimit,
				false: eagerLimit}[tt.transport == "shm"]; x.EagerLimit != want {
				t.Errorf("%s: the eager limit is %d, want %d", tt.name, x.EagerLimit, want)
			}
			if packets, bytes := shm.Window(1 << 20); tt.transport == "shm" &&
				(x.Window != packets || x.WindowBytes != bytes) {
				t.Errorf("%s: %d packets and %d bytes in flight", tt.name, x.Window, x.WindowBytes)
			}
		}
	}
}

// TestSharedEagerLimit checks that eager_limit also applies to shared memory, and that the protocol page states the
// right default.
func TestSharedEagerLimit(t *testing.T) {
	for _, limit := range []int{0, 65536, sharedEagerLimit, 1 << 20} {
		cfg := mustParse(t, fmt.Sprintf(`
ranks:
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.1:2719, run: host, link: {profile: extended, transport: shm, eager_limit: %d}}
`, limit))
		l, err := NewLink(cfg, cfg.Rank(0), cfg.Rank(1))
		if err != nil {
			t.Fatal(err)
		}
		want := limit
		if limit == 0 {
			want = -1
		}
		if x := l.Extended; x == nil || x.EagerLimit != want || int(l.EagerLimit) != limit {
			t.Errorf("eager_limit: %d: %+v", limit, x)
		}
	}
	text, err := os.ReadFile("../docs/ZRLMPI_protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	if says := fmt.Sprintf("`eager_limit` is %d by default.",
		sharedEagerLimit); !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
		t.Errorf("the protocol page does not say %q", says)
	}
}

func TestExtendedLink(t *testing.T) {
	const ranks = `
ranks:
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, peer: software}
defaults: {profile: extended`
	for _, tt := range []struct {
		more                string
		eager, payload, bag int
		unreachable         time.Duration
	}{
		{"}", 65536, maxExtDatagram - 80, 1 << 20, 10 * time.Second},
		{", eager_limit: 0, max_datagram: 1000, deadlines: {ack: 3s}}", -1, 920, 1 << 20, 3 * time.Second},
		{", eager_limit: 1KiB, eager_credit: 2KiB, transport: tcp}", 1024, 32768, 2048, 10 * time.Second},
	} {
		cfg := mustParse(t, ranks+tt.more+"\n")
		l, err := NewLink(cfg, cfg.Rank(0), cfg.Rank(1))
		if err != nil {
			t.Fatal(err)
		}
		if x := l.Extended; x == nil || x.EagerLimit != tt.eager || x.MaxPayload != tt.payload ||
			x.EagerBytes != tt.bag || x.Timing.UnreachableAfter != tt.unreachable {
			t.Errorf("%s: %+v", tt.more, x)
		}
	}
}

// TestSharedMemoryTakesTheExtendedProfile checks that a rank with the shm transport in its own entry must not have
// links to peers of other kinds.
func TestSharedMemoryTakesTheExtendedProfile(t *testing.T) {
	cfg := mustParse(t, `
ranks:
  - {rank: 0, address: 10.0.0.1, run: host, link: {profile: extended, transport: shm}}
  - {rank: 1, address: 10.0.0.1:1000, peer: software}
  - {rank: 2, address: 10.0.0.3, peer: cpu}
`)
	_, err := Plan(cfg, cfg.Rank(0))
	const want = "link.transport: ranks 0 and 2: shm supports only the extended profile, and this link uses " +
		"cloudfpga: use udp or tcp"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
