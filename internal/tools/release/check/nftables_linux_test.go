package check

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPacketFilter checks that the rules in docs/security.md let datagrams pass to a rank only if they come from
// addresses in the rank map and from the daemon's group.
func TestPacketFilter(t *testing.T) {
	const what = "the packet filter of docs/security.md"
	needsRoot(t, what)
	nft := needs(t, what, "nft", "nftables")
	page, err := os.ReadFile(from("docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	const group = 61234
	rules := regexp.MustCompile(`(?ms)^ *table inet zrlmpid \{.*?^   \}$`).FindString(string(page))
	for old, now := range map[string]string{
		"10.12.200.1, 10.12.200.2, 10.12.200.5": "127.0.0.1, 127.0.0.2, 127.0.0.5", `"zrlmpi"`: strconv.Itoa(group),
	} {
		if strings.Count(rules, old) != 1 {
			t.Fatalf("the rules have not %s once:\n%s", old, rules)
		}
		rules = strings.Replace(rules, old, now, 1)
	}
	newNetwork(t).do(func() {
		cmd := exec.Command(nft, "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("nft: %v\n%s", err, out)
			return
		}
		// send sends a datagram from an address to a port, and reports whether it was received.
		send := func(address string, gid, port int) bool {
			if err := unix.Setfsgid(gid); err != nil {
				t.Error(err)
			}
			to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)))
			rank, err := net.ListenUDP("udp4", to)
			if err != nil {
				t.Error(err)
				return false
			}
			defer rank.Close()
			conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(address)}, to)
			if err != nil {
				t.Error(err)
				return false
			}
			defer conn.Close()
			if _, err := conn.Write([]byte{1}); err != nil && !errors.Is(err, unix.EPERM) &&
				!errors.Is(err, unix.ECONNREFUSED) {
				t.Error(err)
			}
			// If the rules let a datagram pass, it can be read as soon as Write returns.
			if err := rank.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Error(err)
			}
			n, _ := rank.Read(make([]byte, 10))
			return n == 1
		}
		for _, tt := range []struct {
			name, from string
			gid, port  int
			arrives    bool
		}{
			{"a rank", "127.0.0.2", group, 2718, true},
			{"a rank, the last port", "127.0.0.5", group, 2845, true},
			{"another address", "127.0.0.9", group, 2718, false},
			{"another address, the last port", "127.0.0.9", group, 2845, false},
			{"another group of the host", "127.0.0.2", group + 1, 2718, false},
			{"another port", "127.0.0.9", group + 1, 2846, true},
		} {
			if got := send(tt.from, tt.gid, tt.port); got != tt.arrives {
				t.Errorf("%s: arrives %v, want %v", tt.name, got, tt.arrives)
			}
		}
		if err := unix.Setfsgid(os.Getegid()); err != nil {
			t.Error(err)
		}
	})
}
