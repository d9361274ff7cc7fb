package doctor

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Plan is the part of the configuration that the checks need.
type Plan struct {
	// Source is the name of the configuration.
	Source string
	// Problems are the errors in the configuration, one per line. If it is not empty, Ranks is empty.
	Problems []string
	// Warnings describe settings that are valid, but wrong in most clusters.
	Warnings []string
	Ranks    []Rank // in rank order
	// Links are the links between the local ranks and all other ranks.
	Links []Link
	// ReceiveBuffer is the size in bytes of the receive buffer that each UDP socket requests.
	ReceiveBuffer int
	// NoOffload is set if the configuration disables UDP offload.
	NoOffload bool
}

// Rank is a rank of the cluster.
type Rank struct {
	Rank  int
	Addr  netip.AddrPort
	Kind  config.Peer
	Local bool
}

// Link is the link from a local rank to another rank.
type Link struct {
	Rank, Peer int
	Profile    protocol.Profile
	Transport  config.Transport
	// MaxDatagram is the length in bytes of the longest datagram, without IP and UDP headers.
	MaxDatagram int
	// Path is the configured path of its datagrams.
	Path config.Path
}

// InvalidPlan builds a Plan for a configuration that was rejected with the error err.
func InvalidPlan(source string, err error) *Plan {
	return &Plan{Source: source, Problems: strings.Split(err.Error(), "\n")}
}

// PlanFromConfig builds a Plan from cfg, which must already have passed Validate.
func PlanFromConfig(source string, cfg *config.Config) *Plan {
	plan := &Plan{
		Source: source, Warnings: cfg.Warnings(),
		ReceiveBuffer: int(cfg.Limits.ReceiveBuffer), NoOffload: cfg.Limits.Offload == config.OffloadOff,
	}
	for i := range cfg.Ranks {
		r := &cfg.Ranks[i]
		plan.Ranks = append(plan.Ranks, Rank{r.Rank, r.Address.AddrPort, r.Peer, r.IsLocal()})
	}
	slices.SortFunc(plan.Ranks, func(a, b Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, local := range cfg.LocalRanks() {
		for i := range cfg.Ranks {
			remote := &cfg.Ranks[i]
			if remote.Rank == local.Rank {
				continue
			}
			l, err := node.NewLink(cfg, local, remote)
			if err != nil {
				return InvalidPlan(source, err)
			}
			plan.Links = append(plan.Links, Link{local.Rank, remote.Rank, l.Profile, l.Transport, l.MaxDatagram, l.Path})
		}
	}
	return plan
}

// PlanFromStatus builds a Plan from the status of a running daemon whose configuration cannot be read. It assumes that
// the daemon sends the longest datagrams that any profile permits.
func PlanFromStatus(status *state.Status) *Plan {
	plan := &Plan{Source: status.Config}
	for i := range status.Cluster {
		m := &status.Cluster[i]
		addr, _ := netip.ParseAddrPort(m.Address)
		plan.Ranks = append(plan.Ranks, Rank{m.Rank, addr, m.Kind, m.Role != ""})
	}
	for i := range status.Ranks {
		r := &status.Ranks[i]
		plan.ReceiveBuffer = max(plan.ReceiveBuffer, r.ReceiveBufferRequested)
		for j := range r.Engine.Peers {
			peer := &r.Engine.Peers[j]
			profile, _ := protocol.ParseProfile(string(peer.Profile))
			plan.Links = append(plan.Links, Link{r.Rank, peer.Rank, profile, peer.Transport, protocol.MaxDatagram, ""})
		}
	}
	return plan
}

// findRank returns the rank with the given number, or nil if it does not exist.
func (p *Plan) findRank(number int) *Rank {
	if number < 0 || number >= len(p.Ranks) {
		return nil
	}
	return &p.Ranks[number]
}

// isRemote reports whether a link leads to a rank on another host.
func (p *Plan) isRemote(l *Link) bool {
	r := p.findRank(l.Peer)
	return r != nil && !r.Local
}

// localRanks returns the local ranks.
func (p *Plan) localRanks() []Rank {
	var local []Rank
	for _, r := range p.Ranks {
		if r.Local {
			local = append(local, r)
		}
	}
	return local
}

// NeededPorts returns the ports that the local ranks need.
func (p *Plan) NeededPorts() []Port {
	var ports []Port
	for _, r := range p.localRanks() {
		for _, t := range []config.Transport{config.TransportUDP, config.TransportTCP} {
			if slices.ContainsFunc(p.Links, func(l Link) bool { return l.Rank == r.Rank && l.Transport == t }) {
				ports = append(ports, Port{Rank: r.Rank, Network: string(t), Addr: r.Addr})
			}
		}
	}
	return ports
}

// NeededPaths returns the paths from local ranks to other hosts, without their facts. Each pair of IP addresses occurs
// once.
func (p *Plan) NeededPaths() (paths []Path) {
	type ends struct{ from, to netip.Addr }
	known := make(map[ends]int)
	for i := range p.Links {
		link := &p.Links[i]
		from, to := p.findRank(link.Rank), p.findRank(link.Peer)
		if from == nil || !p.isRemote(link) {
			continue
		}
		e := ends{from.Addr.Addr(), to.Addr.Addr()}
		at, ok := known[e]
		if !ok {
			at = len(paths)
			known[e] = at
			paths = append(paths, Path{Rank: link.Rank, Peer: link.Peer, From: e.from, To: e.to})
		}
		length, fixed := link.packetLength(e.to)
		paths[at].Length = max(paths[at].Length, length)
		paths[at].Fixed = paths[at].Fixed || fixed
	}
	return paths
}

// Neighbours returns the IPv4 addresses of the ranks on the same network as the named interface: local ranks, and ranks
// reachable without a router.
func (p *Plan) Neighbours(facts *Facts, name string) (addrs []netip.Addr) {
	i := facts.findByName(name)
	if i == nil || i.Loopback || !i.Up {
		return nil
	}
	add := func(a netip.Addr) {
		if a.Is4() && !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	for _, r := range p.localRanks() {
		if facts.findByAddress(r.Addr.Addr()) == i {
			add(r.Addr.Addr())
		}
	}
	for j := range facts.Paths {
		if r := &facts.Paths[j].Route.Value; r.Interface == name && !r.Gateway.IsValid() {
			add(facts.Paths[j].To)
		}
	}
	return addrs
}

// Combined length in bytes of the IP header and the UDP header.
const (
	headersIPv4 = 20 + 8
	headersIPv6 = 40 + 8
)

// headers returns the length in bytes of the IP and UDP headers of a packet to an address.
func headers(to netip.Addr) int {
	if to.Is4() {
		return headersIPv4
	}
	return headersIPv6
}

// minMTU is the MTU that every path should support: the minimum MTU of IPv6, from which the extended profile starts its
// discovery.
const minMTU = 1280

// packetLength returns the length of the longest packet that the link must be able to send. fixed is false for the
// extended profile, which discovers the path MTU, and for TCP, which adapts the length of its segments.
func (l *Link) packetLength(to netip.Addr) (length int, fixed bool) {
	if l.Profile == protocol.Extended || l.Transport != config.TransportUDP {
		return minMTU, false
	}
	return l.MaxDatagram + headers(to), true
}
