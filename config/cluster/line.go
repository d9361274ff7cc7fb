package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Line is the start-up line of a program on upstream's CPU library, which is the whole description of a cluster there:
//
//	PROGRAM udp OWN-ADDRESS SIZE RANK ADDRESS… [ARGUMENT…]
//
// The addresses are those of the other ranks, in the order of ranks.
type Line struct {
	// Rank is the program's own.
	Rank int
	// Hosts are the addresses of all ranks. Those of others may be names.
	Hosts []string
	// Words is how many words the line has; the arguments of the program follow them.
	Words int
}

// lineUsage is what an error about a line ends with.
const lineUsage = "the start-up line is PROGRAM udp OWN-ADDRESS SIZE RANK, then the addresses of the other ranks in the order of ranks, then the program's own arguments"

// IsLine reports whether arguments, of which the first is the program's name, are meant as a start-up line.
func IsLine(args []string) bool { return len(args) > 1 && (args[1] == "udp" || args[1] == "tcp") }

func lineError(key, format string, args ...any) error {
	return &Error{Key: key, Problem: fmt.Sprintf(format, args...) + ": " + lineUsage}
}

// ParseLine reads the start-up line at the beginning of the arguments, of which the first is the program's name. Errors are of type *Error.
func ParseLine(args []string) (*Line, error) {
	const own, size, rank, others = 2, 3, 4, 5 // where they are
	switch {
	case len(args) <= others:
		return nil, lineError("arguments", "%d are too few", max(len(args)-1, 0))
	case args[1] == "tcp":
		return nil, lineError("protocol", "tcp is not supported by upstream's nodes: use udp")
	case args[1] != "udp":
		return nil, lineError("protocol", "%s", strictyaml.Quote(args[1]))
	}
	n, err := strconv.Atoi(args[size])
	if err != nil || n < 2 || n > protocol.MaxRanksCPU {
		return nil, lineError("size", "%s is not a number of ranks, 2 to %d", strictyaml.Quote(args[size]), protocol.MaxRanksCPU)
	}
	l := &Line{Words: others + n - 1, Hosts: make([]string, n)}
	if l.Rank, err = strconv.Atoi(args[rank]); err != nil || l.Rank < 0 || l.Rank >= n {
		return nil, lineError("rank", "%s is not a rank, 0 to %d", strictyaml.Quote(args[rank]), n-1)
	}
	if len(args) < l.Words {
		return nil, lineError("addresses", "%d ranks need the addresses of %d others, got %d", n, n-1, len(args)-others)
	}
	next := others
	for r := range n {
		if r == l.Rank {
			l.Hosts[r] = args[own]
			continue
		}
		l.Hosts[r] = args[next]
		next++
	}
	return l, nil
}

// Config returns the cluster as a checked configuration, in which the program's rank runs. Ports count up from 2718 where ranks share an
// address, as in upstream's library. The line does not say what the other ranks are: peer does. If that is empty, they are CPU ranks where
// two ranks share an address, as FPGAs distinguish their peers by address, and FPGAs otherwise. lookup returns the address of a host. Errors are of type *Error or
// *config.Error.
func (l *Line) Config(peer config.Peer, lookup func(host string) (netip.Addr, error)) (*config.Config, error) {
	ranks := make([]config.Rank, len(l.Hosts))
	others := cmp.Or(peer, config.PeerFPGA)
	seen := map[netip.Addr]bool{}
	for r, host := range l.Hosts {
		addr, err := netip.ParseAddr(host)
		if err != nil && r != l.Rank {
			addr, err = lookup(host)
		}
		if err != nil {
			return nil, &Error{Key: fmt.Sprintf("rank %d", r), Problem: fmt.Sprintf("%s is not its address: %v", strictyaml.Quote(host), err)}
		}
		addr = addr.Unmap()
		if seen[addr] && peer == "" {
			others = config.PeerCPU
		}
		seen[addr] = true
		ranks[r] = config.Rank{Rank: r, Address: config.Address{AddrPort: netip.AddrPortFrom(addr, 0)}}
	}
	for r := range ranks {
		if ranks[r].Peer = others; r == l.Rank {
			ranks[r].Run, ranks[r].Peer = config.RunHost, ""
		}
	}
	cfg := config.New(ranks...)
	cfg.Control.Socket = ""
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("start-up line: %w", err)
	}
	return cfg, nil
}

// Same returns an error of type *Error if a configuration has other ranks, or other addresses of them, than that of a line.
func Same(line, file *config.Config) error {
	if len(line.Ranks) != len(file.Ranks) {
		return &Error{Key: "ranks", Problem: fmt.Sprintf("the start-up line has %d ranks, the configuration %d", len(line.Ranks), len(file.Ranks))}
	}
	for r := range line.Ranks {
		if a, b := line.Rank(r).Address.AddrPort, file.Rank(r).Address.AddrPort; a != b {
			return &Error{Key: "ranks", Problem: fmt.Sprintf("rank %d is at %v in the start-up line and at %v in the configuration: correct one of them", r, a, b)}
		}
	}
	return nil
}
