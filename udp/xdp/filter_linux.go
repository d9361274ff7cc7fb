package xdp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"github.com/google/nftables"

	"github.com/zrlmpi/zrlmpid/udp"
)

// ErrFiltered means that the path would bypass packet filters of this host.
var ErrFiltered = errors.New("the path would bypass the packet filter of this host")

// OpenUnlessFiltered is like Open, but fails with ErrFiltered if the packet filter of this host has rules, which may
// concern the datagrams.
func OpenUnlessFiltered(local netip.AddrPort, peers []netip.AddrPort) (udp.Path, error) {
	if err := checkFilters(); err != nil {
		return nil, err
	}
	return Open(local, peers)
}

// checkFilters returns an error if any chain that sees packets of this host drops packets by default or has a rule. It
// does not interpret rules, because sets, marks and jumps may make any rule concern any datagram.
func checkFilters() error {
	// The file lists the tables of iptables-legacy. It is absent if the module is not loaded.
	for _, file := range []string{"ip_tables_names", "ip6_tables_names"} {
		names, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading the tables of iptables: %w", err)
		}
		if list := strings.Fields(string(names)); len(list) > 0 {
			return fmt.Errorf("%w: iptables-legacy has the tables %s", ErrFiltered, strings.Join(list, ", "))
		}
	}
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("asking for the rules of nftables: %w", err)
	}
	chains, err := conn.ListChains()
	if err != nil {
		return fmt.Errorf("asking for the chains of nftables: %w", err)
	}
	for _, c := range chains {
		if c.Hooknum == nil { // reached only by a jump from a rule
			continue
		}
		name := c.Table.Name + " " + c.Name
		if c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop {
			return fmt.Errorf("%w: chain %s of nftables drops packets by default", ErrFiltered, name)
		}
		rules, err := conn.GetRules(c.Table, c)
		if err != nil {
			return fmt.Errorf("asking for the rules of chain %s of nftables: %w", name, err)
		}
		if len(rules) > 0 {
			return fmt.Errorf("%w: chain %s of nftables has rules", ErrFiltered, name)
		}
	}
	return nil
}
