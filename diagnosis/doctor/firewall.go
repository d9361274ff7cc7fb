package doctor

import (
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/nft"
)

// examineFirewall follows a packet of each path through the rules of this host: one that a peer sends first, and one
// that the local rank sends.
func examineFirewall(in *input) []Finding {
	var f findings
	if why := in.Firewall.Unknown; why != "" {
		f.unknown("look at the rules yourself, as root: nft list ruleset, iptables -S", "%s", why)
		return f
	}
	rules, err := nft.Parse(in.Firewall.Value)
	if err != nil {
		f.unknown("look at the rules yourself: nft list ruleset", "%v", err)
		return f
	}
	type seen struct {
		at    string
		local netip.AddrPort
		peer  netip.Addr
	}
	reported := make(map[seen]bool)
	type ends struct{ from, to netip.Addr }
	leaves := make(map[ends]string) // by which interface
	for i := range in.Paths {
		leaves[ends{in.Paths[i].From, in.Paths[i].To}] = in.Paths[i].Route.Value.Interface
	}
	for i := range in.Links {
		l := &in.Links[i]
		if !in.remote(l) || l.Transport == config.TransportSHM {
			continue
		}
		local, peer := in.rank(l.Rank), in.rank(l.Peer)
		out := nft.Packet{Hook: nft.Output, Transport: string(l.Transport), From: local.Addr, To: peer.Addr, Interface: leaves[ends{local.Addr.Addr(), peer.Addr.Addr()}]}
		back := nft.Packet{Hook: nft.Input, Transport: string(l.Transport), From: peer.Addr, To: local.Addr}
		if own := in.holder(local.Addr.Addr()); in.here(peer.Addr.Addr()) {
			back.Interface = out.Interface // the loopback
		} else if own != nil {
			back.Interface = own.Name
		}
		for _, p := range []nft.Packet{back, out} {
			verdict := rules.Follow(&p)
			key := seen{verdict.At + string(p.Hook), local.Addr, peer.Addr.Addr()}
			if verdict.Result == nft.Passes || reported[key] {
				continue
			}
			reported[key] = true
			what := fmt.Sprintf("%s packets from rank %d at %v to rank %d at %v", l.Transport, l.Peer, p.From, l.Rank, p.To)
			if p.Hook == nft.Output {
				what = fmt.Sprintf("%s packets from rank %d at %v to rank %d at %v", l.Transport, l.Rank, p.From, l.Peer, p.To)
			}
			if verdict.Result == nft.Depends {
				f.unknown("look at the rule: nft -a list ruleset", "%s: depends on what this check does not know: %s", what, verdict.At)
				continue
			}
			f.wrong(fmt.Sprintf("accept them before: nft insert rule %s %s", verdict.Chain, p.Accept()), "%s are dropped by %s", what, verdict.At)
		}
	}
	return f.or("%s, none of which drops packets of the ranks", plural(rules.Chains(), "chain"))
}
