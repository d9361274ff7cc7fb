package nft_test

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/nft"
	"github.com/zrlmpi/zrlmpid/internal/netns"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

func packet(hook nft.Hook, transport, from, to string) *nft.Packet {
	return &nft.Packet{Hook: hook, Transport: transport, From: netip.MustParseAddrPort(from), To: netip.MustParseAddrPort(to), Interface: "eth0"}
}

// TestFollow loads rules into a namespace, and follows packets through what nft prints of them.
func TestFollow(t *testing.T) {
	needs.Root(t, "rules of nftables", "can load them")
	program := needs.Program(t, "rules of nftables", "nft", "nftables")
	in := packet(nft.Input, "udp", "10.9.1.2:2718", "10.9.0.1:2718")
	for _, tt := range []struct {
		name, rules string
		packet      *nft.Packet
		want        nft.Result
		at          string
	}{
		{"no rules", "", in, nft.Passes, ""},
		{"policy", "policy drop;", in, nft.Dropped, "the policy of chain inet t c"},
		{"accepted before the policy", "policy drop; udp dport 2718 accept", in, nft.Passes, ""},
		{"range", "udp dport 2700-2720 drop", in, nft.Dropped, "rule"},
		{"other range", "udp dport 2719-2720 drop", in, nft.Passes, ""},
		{"set", "udp dport { 53, 2718-2720 } drop", in, nft.Dropped, "rule"},
		{"other transport", "tcp dport 2718 drop", in, nft.Passes, ""},
		{"not", "udp dport != 53 reject", in, nft.Dropped, "rule"},
		{"less", "udp dport < 2718 drop", in, nft.Passes, ""},
		{"at most", "udp dport <= 2718 drop", in, nft.Dropped, "rule"},
		{"prefix", "ip saddr 10.0.0.0/8 drop", in, nft.Dropped, "rule"},
		{"other family", "ip6 saddr ::/0 drop", in, nft.Passes, ""},
		{"range of addresses", "ip saddr 10.9.1.1-10.9.1.3 drop", in, nft.Dropped, "rule"},
		{"named set", "policy drop; ip saddr @nodes accept", in, nft.Passes, ""},
		{"named set without it", "policy drop; ip saddr @nodes accept", packet(nft.Input, "udp", "10.9.1.3:2718", "10.9.0.1:2718"), nft.Dropped, "policy"},
		{"established only", "policy drop; ct state established,related accept", in, nft.Dropped, "policy"},
		{"state by a map", "ct state vmap { invalid : drop, new : drop }", in, nft.Dropped, "rule"},
		{"interface", "iifname \"eth*\" drop", in, nft.Dropped, "rule"},
		{"other interface", "iifname lo drop", in, nft.Passes, ""},
		{"jump", "jump other", in, nft.Dropped, "inet t other"},
		{"return before", "return; jump other", in, nft.Passes, ""},
		{"goto with the policy", "policy drop; goto none; accept", in, nft.Dropped, "policy"},
		{"limit", "udp dport 2718 limit rate over 10/second drop", in, nft.Depends, "rule"},
		{"limit before the policy", "policy drop; udp dport 2718 limit rate 10/second accept", in, nft.Depends, "rule"},
		{"mark", "meta mark 7 drop", in, nft.Depends, "rule"},
		{"l4proto", "meta l4proto { tcp, udp } counter log drop", in, nft.Dropped, "rule"},
		{"icmp", "icmp type echo-request drop", in, nft.Passes, ""},
		{"output", "udp dport 2718 drop", packet(nft.Output, "udp", "10.9.0.1:2718", "10.9.1.2:2718"), nft.Passes, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ns, err := netns.New()
			if err != nil {
				t.Fatal(err)
			}
			defer ns.Close()
			script := "table inet t {\n set nodes {\n type ipv4_addr\n elements = { 10.9.1.2 }\n }\n chain none {\n }\n chain other {\n udp dport 2718 drop\n }\n" +
				" chain c {\n type filter hook input priority 0\n " + strings.ReplaceAll(tt.rules, "; ", "\n ") + "\n }\n}\n"
			var out []byte
			ns.Do(func() {
				load := exec.Command(program, "-f", "-")
				load.Stdin = strings.NewReader(script)
				if out, err = load.CombinedOutput(); err == nil {
					out, err = exec.Command(program, "-j", "list", "ruleset").Output()
				}
			})
			if err != nil {
				t.Fatalf("%v: %s\n%s", err, out, script)
			}
			rules, err := nft.Parse(out)
			if err != nil {
				t.Fatal(err)
			}
			if got := rules.Follow(tt.packet); got.Result != tt.want || !strings.Contains(got.At, tt.at) {
				t.Errorf("%+v, want %s at %q\n%s", got, tt.want, tt.at, out)
			}
		})
	}
}

func TestParseOther(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"nftables": 7}`} {
		if _, err := nft.Parse([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
