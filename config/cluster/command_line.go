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

// CommandLine is the command line of a program on upstream's CPU library, which describes the whole cluster:
//
//	PROGRAM udp OWN-ADDRESS SIZE RANK ADDRESS… [ARGUMENT…]
//
// The addresses of the other ranks follow in rank order.
type CommandLine struct {
	// Rank is the rank of the program.
	Rank int
	// Hosts holds the addresses of all ranks. Ranks other than Rank may have a host name instead.
	Hosts []string
	// NumArgs is the number of words in the start-up line. The program's own arguments follow these words.
	NumArgs int
}

// commandLineUsage is appended to errors about a start-up line.
const commandLineUsage = "the start-up line is PROGRAM udp OWN-ADDRESS SIZE RANK, then the addresses of the other ranks " +
	"in the order of ranks, then the program's own arguments"

// IsCommandLine reports whether args, which begin with the program's name, look like a start-up line.
func IsCommandLine(args []string) bool {
	return len(args) > 1 && (args[1] == "udp" || args[1] == "tcp")
}

func commandLineError(key, format string, args ...any) error {
	return &Error{Key: key, Problem: fmt.Sprintf(format, args...) + ": " + commandLineUsage}
}

// ParseCommandLine parses the start-up line at the beginning of args, which begin with the program's name. Errors are
// of type *Error.
func ParseCommandLine(args []string) (*CommandLine, error) {
	const own, size, rank, others = 2, 3, 4, 5 // indices in args
	switch {
	case len(args) <= others:
		return nil, commandLineError("arguments", "%d are too few", max(len(args)-1, 0))
	case args[1] == "tcp":
		return nil, commandLineError("protocol", "tcp is not supported by upstream's nodes: use udp")
	case args[1] != "udp":
		return nil, commandLineError("protocol", "%s", strictyaml.Quote(args[1]))
	}
	n, err := strconv.Atoi(args[size])
	if err != nil || n < 2 || n > protocol.MaxRanksCPU {
		return nil, commandLineError("size", "%s is not a number of ranks, 2 to %d", strictyaml.Quote(args[size]),
			protocol.MaxRanksCPU)
	}
	line := &CommandLine{NumArgs: others + n - 1, Hosts: make([]string, n)}
	if line.Rank, err = strconv.Atoi(args[rank]); err != nil || line.Rank < 0 || line.Rank >= n {
		return nil, commandLineError("rank", "%s is not a rank, 0 to %d", strictyaml.Quote(args[rank]), n-1)
	}
	if len(args) < line.NumArgs {
		return nil, commandLineError("addresses", "%d ranks need the addresses of %d others, got %d", n, n-1,
			len(args)-others)
	}
	next := others
	for r := range n {
		if r == line.Rank {
			line.Hosts[r] = args[own]
			continue
		}
		line.Hosts[r] = args[next]
		next++
	}
	return line, nil
}

// Config returns the cluster as a validated configuration in which the program's rank runs. Ranks that share an address
// have consecutive ports from 2718 on, as in upstream's library. peer is the kind of the other ranks, which the line
// does not specify. If peer is empty, the other ranks are CPU ranks if two ranks share an address, because FPGAs
// distinguish their peers by address, and FPGAs otherwise. lookup returns the address of a host. Errors are of type
// *Error or *config.Error.
func (l *CommandLine) Config(peer config.Peer, lookup func(host string) (netip.Addr, error)) (*config.Config, error) {
	ranks := make([]config.Rank, len(l.Hosts))
	others := cmp.Or(peer, config.PeerFPGA)
	seen := map[netip.Addr]bool{}
	for r, host := range l.Hosts {
		addr, err := netip.ParseAddr(host)
		if err != nil && r != l.Rank {
			addr, err = lookup(host)
		}
		if err != nil {
			return nil, &Error{Key: fmt.Sprintf("rank %d", r),
				Problem: fmt.Sprintf("%s is not its address: %v", strictyaml.Quote(host), err)}
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
	cfg.Control.Socket = new("")
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("start-up line: %w", err)
	}
	return cfg, nil
}

// CheckSameRanks returns an *Error if the ranks or addresses in file differ from those in line.
func CheckSameRanks(line, file *config.Config) error {
	if len(line.Ranks) != len(file.Ranks) {
		return &Error{Key: "ranks",
			Problem: fmt.Sprintf("the start-up line has %d ranks, the configuration %d", len(line.Ranks),
				len(file.Ranks))}
	}
	for r := range line.Ranks {
		if a, b := line.Rank(r).Address.AddrPort, file.Rank(r).Address.AddrPort; a != b {
			return &Error{Key: "ranks", Problem: fmt.Sprintf("rank %d is at %v in the start-up line and at %v in the "+
				"configuration: correct one of them", r, a, b)}
		}
	}
	return nil
}
