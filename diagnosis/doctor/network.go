package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
)

// examineAddresses checks that the addresses of the local ranks are configured on interfaces of this host.
func examineAddresses(in *input) []Finding {
	if why := in.Interfaces.Unknown; why != "" {
		return interfacesUnknown(why)
	}
	var f findings
	for _, rank := range in.localRanks() {
		ip := rank.Addr.Addr()
		if in.isLocalAddress(ip) {
			continue
		}
		f.addWrong(fmt.Sprintf("add the address to an interface, correct the address of rank %d, or start it on the "+
			"host that has it", rank.Rank),
			"rank %d: no interface of this host has %v", rank.Rank, ip)
	}
	return f.orRight("on interfaces: %s", list(in.localRanks(), func(r Rank) string { return r.Addr.Addr().String() }))
}

func interfacesUnknown(why string) []Finding {
	var f findings
	f.addUnknown("run it as a user who may open netlink sockets", "the interfaces cannot be read: %s", why)
	return f
}

// isUsableLoopback reports whether ip is in 127.0.0.0/8 and the host's loopback interface is up. The loopback interface
// accepts all of these addresses.
func isUsableLoopback(ip netip.Addr, f *Facts) bool {
	return ip.Is4() && ip.IsLoopback() &&
		slices.ContainsFunc(f.Interfaces.Value, func(i Interface) bool { return i.Loopback && i.Up })
}

// examineDuplicates checks that no other station uses the address of a rank, because each station would then receive
// only some of the packets.
func examineDuplicates(in *input) []Finding {
	if why := in.Interfaces.Unknown; why != "" {
		return interfacesUnknown(why)
	}
	var f findings
	for _, r := range in.localRanks() {
		ip := r.Addr.Addr()
		for _, i := range in.Interfaces.Value {
			if slices.Contains(i.Duplicates, ip) {
				f.addWrong(fmt.Sprintf("give the other station or rank %d another address", r.Rank),
					"rank %d: another station on %s has %v", r.Rank, i.Name, ip)
			}
		}
	}
	if why := in.Claims.Unknown; why != "" {
		f.addUnknown("run it as root", "%s", why)
		return f
	}
	for i := range in.Claims.Value {
		f.addClaims(in, &in.Claims.Value[i])
	}
	return f.orRight("none among the %d in the networks of this host", len(in.Claims.Value))
}

// addClaims adds a finding if stations other than the owner of an address answer ARP requests for it.
func (f *findings) addClaims(in *input, claim *Claim) {
	at := slices.IndexFunc(in.Ranks, func(r Rank) bool { return r.Addr.Addr() == claim.Addr })
	if at < 0 {
		return
	}
	rank, stations := in.Ranks[at].Rank, strings.Join(claim.Stations, ", ")
	switch {
	case in.isLocalAddress(claim.Addr) && len(claim.Stations) > 0:
		f.addWrong(fmt.Sprintf("give the station or rank %d another address", rank),
			"rank %d: %v is an address of this host, and the station %s answers ARP requests for it on %s",
			rank, claim.Addr, stations, claim.Interface)
	case !in.isLocalAddress(claim.Addr) && len(claim.Stations) > 1:
		f.addWrong("give each station its own address; if they are interfaces of one host, run on it: "+
			"sysctl -w net.ipv4.conf.all.arp_ignore=1",
			"rank %d: several stations answer ARP requests for %v on %s: %s", rank, claim.Addr, claim.Interface, stations)
	}
}

// isLocalAddress reports whether an address belongs to this host. Ranks of another daemon may be on this host as well.
func (f *Facts) isLocalAddress(ip netip.Addr) bool {
	return f.findByAddress(ip) != nil || isUsableLoopback(ip, f)
}

// examineInterfaces checks that the interfaces used by the local ranks are up and have carrier.
func examineInterfaces(in *input) []Finding {
	if why := in.Interfaces.Unknown; why != "" {
		return interfacesUnknown(why)
	}
	var f findings
	used := in.usedInterfaces()
	for _, i := range used {
		switch {
		case !i.Up:
			f.addWrong(fmt.Sprintf("ip link set %s up", i.Name), "interface %s is down", i.Name)
		case !i.Carrier:
			f.addWrong("check cable, transceiver, and whether the port of the switch is enabled",
				"interface %s is up, and has no carrier", i.Name)
		}
	}
	if len(used) == 0 {
		return f.orRight("no interface has an address of a local rank")
	}
	return f.orRight("up, with carrier: %s", list(used, func(i *Interface) string { return i.Name }))
}

// usedInterfaces returns the interfaces with addresses of local ranks, and those through which the ranks' packets
// leave.
func (in *input) usedInterfaces() []*Interface {
	var used []*Interface
	add := func(i *Interface) {
		if i != nil && !slices.Contains(used, i) {
			used = append(used, i)
		}
	}
	for _, r := range in.localRanks() {
		add(in.findByAddress(r.Addr.Addr()))
	}
	for i := range in.Paths {
		add(in.findByName(in.Paths[i].Route.Value.Interface))
	}
	return used
}

// examineRoutes checks that a route exists for every path, and that packets leave through the interface with their
// source address.
func examineRoutes(in *input) []Finding {
	var f findings
	if len(in.Paths) == 0 {
		return f.orRight("all ranks are on this host")
	}
	right := 0
	for i := range in.Paths {
		path := &in.Paths[i]
		switch own := in.findByAddress(path.From); {
		case in.Interfaces.Unknown == "" && !in.isLocalAddress(path.From):
			continue // check local_address reports it
		case path.From.IsLoopback() && !path.To.IsLoopback():
			f.addWrong(fmt.Sprintf("give rank %d an address that other hosts reach", path.Rank),
				"%v: packets from a loopback address do not leave this host", path)
		case path.Route.Unknown != "":
			f.addUnknown("", "%v: the route cannot be read: %s", path, path.Route.Unknown)
		case path.Route.Value.Refused != "":
			f.addWrong(fmt.Sprintf("ip route get %v from %v shows what the kernel knows; add a route, or correct the "+
				"address of rank %d", path.To, path.From, path.Peer),
				"%v: there is no route: %s", path, path.Route.Value.Refused)
		case path.usesOtherInterface(in):
			f.addWrong(fmt.Sprintf("correct the route of %v, or add one for this source: ip rule add from %v", path.To,
				path.From),
				"%v: packets leave by %s, but %v is an address of %s: peers and routers may drop them, and answers "+
					"arrive at another interface",
				path, path.Route.Value.Interface, path.From, own.Name)
		default:
			right++
		}
	}
	if right == 0 && len(f) == 0 {
		f.addUnknown("", "no local rank has an address from which there could be a route")
	}
	return f.orRight("through the interfaces of the source addresses: %s", plural(right, "path"))
}

// usesOtherInterface reports whether packets leave through an interface other than the one with their source address.
// It ignores the loopback interface, whose addresses belong to the whole host.
func (p *Path) usesOtherInterface(in *input) bool {
	own, out := in.findByAddress(p.From), in.findByName(p.Route.Value.Interface)
	return own != nil && out != nil && own != out && !own.Loopback && !out.Loopback
}

// String names the path in a sentence.
func (p *Path) String() string {
	return fmt.Sprintf("rank %d at %v to rank %d at %v", p.Rank, p.From, p.Peer, p.To)
}

// examineReversePath checks that the reverse path filter does not drop packets from peers. In strict mode, the filter
// drops packets whose source is reached through another interface.
func examineReversePath(in *input) []Finding {
	if why := in.Interfaces.Unknown; why != "" {
		return interfacesUnknown(why)
	}
	var f findings
	for i := range in.Paths {
		path := &in.Paths[i]
		own := in.findByAddress(path.From)
		if own == nil || !path.usesOtherInterface(in) {
			continue
		}
		switch mode := own.ReversePath; {
		case mode.Unknown != "":
			f.addUnknown("", "interface %s: %s", own.Name, mode.Unknown)
		case mode.Value == ReversePathStrict:
			f.addWrong(fmt.Sprintf("correct the route of %v, or set the filter to loose: sysctl -w "+
				"net.ipv4.conf.%s.rp_filter=2", path.To, own.Name),
				"%v: packets of rank %d that arrive at %s are dropped, as the filter is strict and the route to %v "+
					"leads through %s",
				path, path.Peer, own.Name, path.To, path.Route.Value.Interface)
		}
	}
	return f.orRight("does not drop packets of peers")
}

// examineNeighbours checks that next hops answer ARP or neighbour discovery.
func examineNeighbours(in *input) []Finding {
	var f findings
	reported := make(map[netip.Addr]bool)
	for i := range in.Paths {
		path := &in.Paths[i]
		hop := path.Route.Value.Gateway
		if !hop.IsValid() {
			hop = path.To
		}
		if path.Neighbour != NeighbourFailed || reported[hop] {
			continue
		}
		reported[hop] = true
		if hop == path.To {
			f.addWrong(fmt.Sprintf("check that the node of rank %d is up, that %v is its address, and that it is in the "+
				"same network or VLAN", path.Peer, path.To),
				"%v: %v does not answer on %s", path, hop, path.Route.Value.Interface)
			continue
		}
		f.addWrong(fmt.Sprintf("check that the router is up, or correct the route: ip route get %v", path.To),
			"%v: the router %v does not answer on %s", path, hop, path.Route.Value.Interface)
	}
	return f.orRight("no entry has failed")
}

// examinePathMTU checks that paths carry the longest datagrams, according to both the kernel and echo requests.
func examinePathMTU(in *input) []Finding {
	var f findings
	probed, routed := 0, 0
	for i := range in.Paths {
		path := &in.Paths[i]
		if path.Route.Unknown != "" || path.Route.Value.Refused != "" {
			continue // examineRoutes reports it
		}
		routed++
		if mtu := path.Route.Value.MTU; mtu > 0 && mtu < path.Length {
			f.addWrong(in.mtuAdvice(path, mtu), "%v: the path carries packets of %d bytes, and the longest of the link have %d",
				path, mtu, path.Length)
			continue
		}
		if path.Echo == nil {
			continue
		}
		fpga := in.findRank(path.Peer).Kind == config.PeerFPGA
		switch echo := path.Echo.Value; {
		case path.Echo.Unknown != "":
			f.addUnknown("run it as root, or let the user send echo requests: sysctl -w net.ipv4.ping_group_range='0 "+
				"2147483647'", "%v: %s", path, path.Echo.Unknown)
		case echo.Long:
			probed++
		case !echo.Short && path.Neighbour == NeighbourFailed:
			f.addUnknown("", "%v: its next hop does not answer", path)
		case !echo.Short:
			f.addUnknown("check that it is up; a firewall here or on the path may drop packets: look at nft list ruleset",
				"%v: does not answer ICMP echo requests", path)
		case fpga:
			f.addUnknown("the FPGA may not answer long ones; zrlctl ping with 346 words sends a datagram as long",
				"%v: answers an ICMP echo request of %d bytes, and not one of %d", path, ShortEcho, path.Length)
		default:
			f.addWrong(in.mtuAdvice(path, minMTU)+"; something on the way drops longer packets and does not report it",
				"%v: answers an ICMP echo request of %d bytes, and not one of %d", path, ShortEcho, path.Length)
		}
	}
	if routed < len(in.Paths) {
		f.addUnknown("", "%s have no route", plural(len(in.Paths)-routed, "path"))
	}
	if probed == 0 {
		return f.orRight("no link has longer packets than the interfaces carry")
	}
	return f.orRight("%s carry the longest packets of their links", plural(probed, "path"))
}

// ShortEcho is the length in bytes of a packet with a short echo request.
const ShortEcho = 84

// mtuAdvice returns the remedy for a path that cannot carry packets longer than mtu bytes.
func (in *input) mtuAdvice(path *Path, mtu int) string {
	if !path.Fixed {
		return fmt.Sprintf("raise the MTU on the path to %d or more", minMTU)
	}
	switch in.findRank(path.Peer).Kind {
	case config.PeerFPGA:
		return "raise the MTU on the path: an FPGA does not join fragments, and sends datagrams of 1416 bytes itself"
	case config.PeerCPU:
		return "raise the MTU on the path: upstream's library sends datagrams of 1416 bytes, and each lost fragment " +
			"loses one"
	}
	return fmt.Sprintf("raise the MTU on the path, or set max_datagram: %d for rank %d", (mtu-headers(path.To))&^7,
		path.Peer)
}
