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
// concern the datagrams. While nftables has rules later, the path carries nothing.
func OpenUnlessFiltered(local netip.AddrPort, peers []netip.AddrPort) (udp.Path, error) {
	f, err := newFilter()
	if err != nil {
		return nil, err
	}
	p, err := open(local, peers)
	if err != nil {
		f.close()
		return nil, err
	}
	p.filter = f
	p.routes.recheck.Store(new(p.checkFilter))
	return p, nil
}

// checkFilter leaves all datagrams to the kernel while the packet filter has rules. It returns the reason, or nil.
func (p *Path) checkFilter() error {
	reason := p.filter.check()
	if (reason != nil) != p.filtered {
		if err := p.device.redirect(p.slot, p.local, reason == nil); err != nil {
			return err // it is tried again
		}
		p.filtered = reason != nil
	}
	return reason
}

// filter is the packet filter of a network namespace.
type filter struct{ conn *nftables.Conn }

// newFilter returns the packet filter of the current namespace. It fails if the filter has rules.
func newFilter() (*filter, error) {
	if err := checkLegacyTables(); err != nil {
		return nil, err
	}
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("asking for the rules of nftables: %w", err)
	}
	f := &filter{conn}
	if err := f.check(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *filter) close() { _ = f.conn.CloseLasting() } // nothing is pending

// check returns an error if any chain of nftables that sees packets of this host drops packets by default or has a
// rule. It does not interpret rules, because sets, marks and jumps may make any rule concern any datagram.
func (f *filter) check() error {
	conn := f.conn
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

// checkLegacyTables returns an error if iptables-legacy has tables, or if that cannot be determined.
func checkLegacyTables() error {
	for _, family := range []string{"ip", "ip6"} {
		// The file is absent if the kernel has no iptables. Only root may read it.
		names, err := os.ReadFile("/proc/thread-self/net/" + family + "_tables_names")
		switch list := strings.Fields(string(names)); {
		case errors.Is(err, fs.ErrPermission):
			if err := checkLegacyModules(family); err != nil {
				return err
			}
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("reading the tables of iptables: %w", err)
		case len(list) > 0:
			return fmt.Errorf("%w: iptables-legacy has the tables %s", ErrFiltered, strings.Join(list, ", "))
		}
	}
	return nil
}

// checkLegacyModules returns an error if a module with a table of iptables-legacy is loaded, or if iptables is not a
// module, so that its tables may be built into the kernel.
func checkLegacyModules(family string) error {
	modules, err := os.ReadFile("/proc/modules")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the modules of the kernel: %w", err)
	}
	isModule := false
	for line := range strings.Lines(string(modules)) {
		name, _, _ := strings.Cut(line, " ")
		isModule = isModule || name == family+"_tables"
		if strings.HasPrefix(name, family+"table_") {
			return fmt.Errorf("%w: the module %s of iptables-legacy is loaded, whose rules only root may read", ErrFiltered,
				name)
		}
	}
	if !isModule {
		return fmt.Errorf("%w, if iptables-legacy has rules: this kernel has it built in, and only root may read its "+
			"tables", ErrFiltered)
	}
	return nil
}
