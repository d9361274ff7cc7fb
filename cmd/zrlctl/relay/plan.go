package relay

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Plan holds the real addresses of the ranks and the relay's addresses for them.
type Plan struct {
	cfg *config.Config
	// Medium is the kind of transport to relay: Datagrams or Streams.
	Medium impair.Medium
	// realAddrs maps each rank to its real address. relayAddrs maps it to the relay's address that other ranks use.
	realAddrs, relayAddrs *rankmap.Map
}

// DefaultPool is the default pool of relay addresses, for ranks on loopback addresses.
const DefaultPool = "127.27.18.0/24"

// NewPlan assigns an address from the pool to each rank of cfg, which must be valid. The port is the port of the rank's
// real address. The zero Pool means DefaultPool. transport is "udp" or "tcp"; if it is empty, NewPlan uses
// defaults.transport of the configuration, or udp if that is not set.
func NewPlan(cfg *config.Config, pool cluster.Pool, transport string) (*Plan, error) {
	medium, err := relayMedium(cfg, transport)
	if err != nil {
		return nil, err
	}
	loopback := true
	for i := range cfg.Ranks {
		loopback = loopback && cfg.Ranks[i].Address.Addr().IsLoopback()
	}
	switch {
	case !pool.IsZero():
	case !loopback:
		return nil, errors.New("the ranks are not on loopback addresses: give addresses of this machine for the " +
			"relay, one for each rank")
	default:
		if pool, err = cluster.ParsePool(DefaultPool); err != nil {
			return nil, err
		}
	}
	addrs, err := pool.Take(len(cfg.Ranks))
	if err != nil {
		return nil, err
	}
	plan := &Plan{cfg: cfg, Medium: medium}
	own, seen := make([]rankmap.Entry, len(cfg.Ranks)), make([]rankmap.Entry, len(cfg.Ranks))
	for i := range cfg.Ranks {
		rank := &cfg.Ranks[i]
		if slices.Contains(addrs, rank.Address.Addr()) {
			return nil, fmt.Errorf("%v is the address of rank %d, and cannot also be an address of the relay: give other "+
				"addresses", rank.Address.Addr(), rank.Rank)
		}
		kind := rank.Peer
		own[i] = rankmap.Entry{Rank: rank.Rank, Addr: rank.Address.AddrPort, Kind: kind}
		seen[i] = rankmap.Entry{Rank: rank.Rank, Addr: netip.AddrPortFrom(addrs[rank.Rank], rank.Address.Port()), Kind: kind}
	}
	if plan.realAddrs, err = rankmap.New(own); err == nil {
		plan.relayAddrs, err = rankmap.New(seen)
	}
	return plan, err
}

// relayMedium returns the kind of transport to relay. It returns an error if not all links use the same transport.
func relayMedium(cfg *config.Config, transport string) (impair.Medium, error) {
	want := config.Transport(transport)
	if want == "" {
		want = config.TransportUDP
		if t := cfg.Defaults.Transport; t != nil {
			want = *t
		}
	}
	medium := impair.Datagrams
	switch want {
	case config.TransportUDP:
	case config.TransportTCP:
		medium = impair.Streams
	default:
		return 0, fmt.Errorf("transport %q cannot be relayed: use udp or tcp", want)
	}
	for i := range cfg.Ranks {
		if l := cfg.Ranks[i].Link; l != nil && l.Transport != nil && *l.Transport != want {
			return 0, fmt.Errorf("rank %d has link.transport %s, but %s is relayed: use one transport for all ranks",
				cfg.Ranks[i].Rank, *l.Transport, want)
		}
	}
	return medium, nil
}

// Size returns the number of ranks.
func (p *Plan) Size() int { return p.realAddrs.Size() }

// Addrs returns the real address of a rank, and the address that other ranks use for it.
func (p *Plan) Addrs(rank int) (own, seen netip.AddrPort) {
	return p.realAddrs.Addr(rank), p.relayAddrs.Addr(rank)
}

// ConfigFor returns a configuration for a daemon or program that runs the given ranks, all of which the plan's
// configuration must run. ConfigFor does not change the settings of these ranks, and turns all other ranks into remote
// ranks at the relay's addresses. Messages between the given ranks are not relayed.
func (p *Plan) ConfigFor(local []int) (*config.Config, error) {
	c := *p.cfg
	c.Ranks = slices.Clone(c.Ranks)
	for _, rank := range local {
		r := c.Rank(rank)
		switch {
		case r == nil:
			return nil, fmt.Errorf("there is no rank %d: the ranks are 0 to %d", rank, p.Size()-1)
		case !r.IsLocal():
			return nil, fmt.Errorf("rank %d has no run: in the configuration: add run: host or run: standin, or "+
				"start the rank with the addresses of the relay", rank)
		}
	}
	for i := range c.Ranks {
		if r := &c.Ranks[i]; !slices.Contains(local, r.Rank) {
			c.Ranks[i] = config.Rank{Rank: r.Rank, Address: config.Address{AddrPort: p.relayAddrs.Addr(r.Rank)}, Peer: r.Peer,
				Link: r.Link}
		}
	}
	transport := config.Transport(p.Medium.String()) // shared memory cannot be relayed
	c.Defaults.Transport = &transport
	return &c, c.Validate()
}

// Check returns an error that lists each rule in the script that cannot apply to the ranks of the plan. It returns nil
// if every rule can apply.
func (p *Plan) Check(s impair.Script) error { return s.Check(p.Medium, p.cfg.Addrs()) }
