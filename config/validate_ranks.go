package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// validateRanks checks each rank separately, and then the cluster.
func (c *Config) validateRanks(problems *strictyaml.Problems) {
	local := false
	for i := range c.Ranks {
		local = local || c.Ranks[i].IsLocal()
		c.Ranks[i].validate(problems, rankKey(i))
	}
	if !local {
		problems.Add("ranks", "no rank runs here: give the ranks of this daemon run: host or run: standin")
	}
	numbers := c.validateNumbers(problems)
	for i := range c.Ranks {
		c.Ranks[i].validateKernelPeer(problems, rankKey(i), numbers)
	}
	c.validateFaults(problems)
	c.validateSize(problems)
	c.validateAddresses(problems)
}

func rankKey(i int) string { return fmt.Sprintf("ranks[%d]", i) }

// RankError returns an *Error about a key of a rank, with its line in the file.
func (c *Config) RankError(rank int, key, problem string) error {
	i := slices.IndexFunc(c.Ranks, func(r Rank) bool { return r.Rank == rank })
	return c.KeyError(rankKey(i)+"."+key, problem)
}

// KeyError returns an *Error about a key, with its line in the file.
func (c *Config) KeyError(key, problem string) error {
	p := strictyaml.NewProblems(&c.source.Source)
	p.Add(key, "%s", problem)
	return p.Err()
}

// validateNumbers checks that the ranks are 0 … n-1, and maps each number to its index in c.Ranks.
func (c *Config) validateNumbers(problems *strictyaml.Problems) map[int]int {
	n := len(c.Ranks)
	index := make(map[int]int, n)
	for i, rank := range c.Ranks {
		if rank.Rank == noRank {
			problems.Add(rankKey(i)+".rank", "missing: number the ranks 0 to %d", n-1)
			continue
		}
		if first, twice := index[rank.Rank]; twice {
			problems.Add(rankKey(i)+".rank", "rank %d is already %s", rank.Rank, rankKey(first))
			continue
		}
		index[rank.Rank] = i
		if rank.Rank < 0 || rank.Rank >= n {
			problems.Add(rankKey(i)+".rank", "%d is out of range: %d ranks are numbered 0 to %d", rank.Rank, n, n-1)
		}
	}
	for number := range n {
		if _, ok := index[number]; !ok {
			problems.Add("ranks", "rank %d is missing: list every rank of the cluster, including remote ranks", number)
		}
	}
	return index
}

// validateFaults checks the fault rules of stand-ins.
func (c *Config) validateFaults(problems *strictyaml.Problems) {
	addrs := c.Addrs()
	for i := range c.Ranks {
		faults, key := c.Ranks[i].Faults, rankKey(i)+".faults"
		if faults == nil {
			continue
		}
		if len(faults.Rules) == 0 {
			problems.Add(key+".rules", "no rules given: add a rule, such as loss 5%%, or remove faults")
		}
		for j := range faults.Rules {
			if err := faults.Rules[j].Check(impair.Datagrams, addrs); err != nil {
				problems.Add(fmt.Sprintf("%s.rules[%d]", key, j), "%v", err)
			}
		}
	}
}

// Addrs returns the IP addresses of the ranks, in rank order.
func (c *Config) Addrs() []netip.Addr {
	addrs := make([]netip.Addr, len(c.Ranks))
	for i := range c.Ranks {
		if r := &c.Ranks[i]; r.Rank >= 0 && r.Rank < len(addrs) {
			addrs[r.Rank] = r.Address.Addr()
		}
	}
	return addrs
}

// validateSize checks that the number of ranks does not exceed what deployed nodes support.
func (c *Config) validateSize(problems *strictyaml.Problems) {
	n := len(c.Ranks)
	fpga, cpu := -1, -1
	for i, r := range c.Ranks {
		if r.Peer == PeerFPGA && r.Quirks != QuirksOff && fpga < 0 {
			fpga = i
		}
		if r.Peer == PeerCPU && cpu < 0 {
			cpu = i
		}
	}
	if fpga >= 0 && n > protocol.MaxRanksFPGA {
		problems.Add("ranks", "%d ranks, but an FPGA (rank %d) supports at most %d: use fewer ranks, or give stand-ins "+
			"quirks: off",
			n, c.Ranks[fpga].Rank, protocol.MaxRanksFPGA)
	}
	if cpu >= 0 && n > protocol.MaxRanksCPU {
		problems.Add("ranks", "%d ranks, but upstream's CPU library (rank %d) supports at most %d: use fewer ranks",
			n, c.Ranks[cpu].Rank, protocol.MaxRanksCPU)
	}
}

// validateAddresses checks that all ranks have different addresses.
func (c *Config) validateAddresses(problems *strictyaml.Problems) {
	fpga := -1
	for _, r := range c.Ranks {
		if r.Peer == PeerFPGA {
			fpga = r.Rank
			break
		}
	}
	byAddress := make(map[netip.AddrPort]int, len(c.Ranks))
	byIP := make(map[netip.Addr]int, len(c.Ranks))
	for i, rank := range c.Ranks {
		if !rank.Address.IsValid() {
			continue
		}
		key := rankKey(i) + ".address"
		if other, ok := byAddress[rank.Address.AddrPort]; ok {
			problems.Add(key, "%v is already the address of rank %d: give rank %d its own address", rank.Address, other,
				rank.Rank)
			continue
		}
		byAddress[rank.Address.AddrPort] = rank.Rank
		ip := rank.Address.Addr()
		if other, ok := byIP[ip]; ok && fpga >= 0 {
			problems.Add(key, "ranks %d and %d share %v, but the cluster has an FPGA (rank %d), which distinguishes its "+
				"peers by IP address only: give each rank its own IP address",
				other, rank.Rank, ip, fpga)
			continue
		}
		byIP[ip] = rank.Rank
	}
}

// unencryptedLinks returns a warning about links between zrlmpids that the section tls does not secure.
func (c *Config) unencryptedLinks() []string {
	if c.TLS == nil {
		return nil
	}
	var plain []string
	for i := range c.Ranks {
		rank := &c.Ranks[i]
		transport := c.Defaults.Transport
		if rank.Link != nil && rank.Link.Transport != nil {
			transport = rank.Link.Transport
		}
		if rank.Peer == PeerSoftware && !rank.IsLocal() && (transport == nil || *transport != TransportTCP) {
			plain = append(plain, strconv.Itoa(rank.Rank))
		}
	}
	if len(plain) == 0 {
		return nil
	}
	return []string{"links to these ranks are not encrypted, because tls works only over tcp: " +
		strings.Join(plain, ", ")}
}

// Warnings returns a one-line text for each setting that is valid but unsuitable for most clusters. The configuration
// must have passed Validate.
func (c *Config) Warnings() []string {
	warnings := slices.Clone(c.warnings)
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	var fpga, loopback, allows *Rank
	for i := range c.Ranks {
		rank := &c.Ranks[i]
		if fpga == nil && rank.Peer == PeerFPGA && !rank.IsLocal() {
			fpga = rank
		}
		if allows == nil && rank.Allow != nil {
			allows = rank
		}
		if loopback == nil && rank.IsLocal() && rank.Address.Addr().IsLoopback() {
			loopback = rank
		}
	}
	for i := range c.Ranks {
		rank := &c.Ranks[i]
		if fpga != nil && rank.Address.Port() != protocol.Port {
			warn("rank %d has port %d, but a deployed FPGA (rank %d) sends to and from port %d only", rank.Rank,
				rank.Address.Port(), fpga.Rank, protocol.Port)
		}
		if rank.IsLocal() {
			continue
		}
		if loopback != nil && !rank.Address.Addr().IsLoopback() {
			warn("rank %d runs here on the loopback address %v and cannot reach rank %d at %v", loopback.Rank,
				loopback.Address.Addr(), rank.Rank, rank.Address)
		}
		if rank.Peer != PeerSoftware && c.LinkFor(rank.Rank, Link{}).Transport == TransportTCP {
			warn("the link to rank %d is tcp, but deployed nodes (peer: %s) speak UDP only", rank.Rank, rank.Peer)
		}
	}
	if allows != nil && c.Control.Allow == nil && c.ControlSocket() != "" && c.Control.Mode&0o022 != 0 {
		warn("rank %d has allow, but all users that control.mode %v admits to the control socket can send and "+
			"receive as it: set control.allow", allows.Rank, c.Control.Mode)
	}
	return append(warnings, c.unencryptedLinks()...)
}
