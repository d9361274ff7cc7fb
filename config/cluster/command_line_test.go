package cluster

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
)

func noLookup(host string) (netip.Addr, error) { return netip.Addr{}, errors.New("no such host") }

func TestParseCommandLine(t *testing.T) {
	for _, tc := range []struct {
		line  string
		words int
		want  string
	}{
		{"app udp 10.0.0.1 2 0 10.0.0.2", 6, "0 host 10.0.0.1:2718 software\n1 10.0.0.2:2718 fpga\n"},
		{"app udp 10.0.0.3 3 2 10.0.0.1 10.0.0.2 500 x", 7,
			"0 10.0.0.1:2718 fpga\n1 10.0.0.2:2718 fpga\n2 host 10.0.0.3:2718 software\n"},
		{"app udp 10.0.0.1 4 1 10.0.0.1 10.0.0.2 10.0.0.1", 8,
			"0 10.0.0.1:2718 cpu\n1 host 10.0.0.1:2719 software\n2 10.0.0.2:2718 cpu\n3 10.0.0.1:2720 cpu\n"},
		{"app udp 10.0.0.1 2 0 fpga1", 6, "0 host 10.0.0.1:2718 software\n1 10.0.0.9:2718 fpga\n"},
	} {
		l, err := ParseCommandLine(strings.Fields(tc.line))
		if err != nil || l.NumArgs != tc.words {
			t.Errorf("%s: %+v, %v", tc.line, l, err)
			continue
		}
		cfg, err := l.Config("", func(host string) (netip.Addr, error) { return netip.MustParseAddr("10.0.0.9"), nil })
		if err != nil {
			t.Errorf("%s: %v", tc.line, err)
		} else if got := summary(cfg); got != tc.want {
			t.Errorf("%s: got\n%swant\n%s", tc.line, got, tc.want)
		}
	}
}

func TestParseCommandLineErrors(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "arguments: 0 are too few: ",
		"app":                             "arguments: 0 are too few: ",
		"app udp 10.0.0.1 2 0":            "arguments: 4 are too few: ",
		"app tcp 10.0.0.1 2 0 10.0.0.2":   "protocol: tcp is not",
		"app sctp 10.0.0.1 2 0 10.0.0.2":  `protocol: "sctp": `,
		"app udp 10.0.0.1 1 0 10.0.0.2":   `size: "1" is not a number of ranks, 2 to 128: `,
		"app udp 10.0.0.1 129 0 10.0.0.2": `size: "129" is not`,
		"app udp 10.0.0.1 2 2 10.0.0.2":   `rank: "2" is not a rank, 0 to 1: `,
		"app udp 10.0.0.1 2 -1 10.0.0.2":  `rank: "-1" is not a rank`,
		"app udp 10.0.0.1 3 0 10.0.0.2":   "addresses: 3 ranks need the addresses of 2 others, got 1",
	} {
		_, err := ParseCommandLine(strings.Fields(line))
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(text(err), want) || !strings.HasSuffix(text(err), commandLineUsage) {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
	for line, want := range map[string]string{
		"app udp me 2 0 10.0.0.2":          `rank 0: "me" is not its address: ParseAddr("me"): unable to parse IP`,
		"app udp 10.0.0.1 2 0 nowhere":     `rank 1: "nowhere" is not its address: no such host`,
		"app udp 0.0.0.0 2 0 10.0.0.2":     "start-up line: ranks[0].address",
		"app udp 10.0.0.1 2 0 10.0.0.2%e0": `rank 1: "10.0.0.2%e0" is not its address: no such host`,
	} {
		l, err := ParseCommandLine(strings.Fields(line))
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if _, err := l.Config("", noLookup); !strings.HasPrefix(text(err), want) {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

func TestCheckSameRanks(t *testing.T) {
	l, err := ParseCommandLine(strings.Fields("app udp 10.0.0.1 2 0 10.0.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	line, err := l.Config("", noLookup)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := l.Config(config.PeerCPU, noLookup); err != nil || cfg.Rank(1).Peer != config.PeerCPU {
		t.Errorf("%+v, %v", cfg, err)
	}
	for file, want := range map[string]string{
		"ranks: [{rank: 0, address: 10.0.0.1, run: host}, {rank: 1, address: 10.0.0.2, peer: cpu}]": "",
		"ranks: [{rank: 0, address: 10.0.0.1, run: host}, {rank: 1, address: 10.0.0.3, peer: cpu}]": "ranks: rank 1 is at " +
			"10.0.0.2:2718 in the start-up line and at 10.0.0.3:2718 in the configuration: correct one of them",
		"ranks: [{rank: 0, address: 10.0.0.1, run: host}, {rank: 1, address: 10.0.0.2, peer: cpu}, {rank: 2, " +
			"address: 10.0.0.4, peer: fpga}]": "ranks: the start-up line has 2 ranks, the configuration 3",
	} {
		cfg, err := config.Parse(strings.NewReader(file), "file.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := CheckSameRanks(line, cfg); text(got) != want {
			t.Errorf("%s: %v, want %s", file, got, want)
		}
	}
}

// FuzzLine checks that no start-up line makes the parser panic or return more words than the line has.
func FuzzLine(f *testing.F) {
	f.Add("app udp 10.0.0.1 4 1 10.0.0.1 10.0.0.2 10.0.0.1 x")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		l, err := ParseCommandLine(args)
		if err != nil {
			return
		}
		if l.NumArgs > len(args) || !reflect.DeepEqual(l.Hosts[l.Rank], args[2]) {
			t.Fatalf("%q: %+v", line, l)
		}
		_, _ = l.Config("", noLookup)
	})
}
