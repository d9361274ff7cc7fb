package doctor

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// Fact is what the operating system has answered, or why that is unknown.
type Fact[T any] struct {
	Value T `json:"value"`
	// Unknown is why there is no value; empty if there is one.
	Unknown string `json:"unknown,omitempty"`
}

// Known returns the fact of a value and an error.
func Known[T any](value T, err error) Fact[T] {
	if err != nil {
		return Fact[T]{Unknown: err.Error()}
	}
	return Fact[T]{Value: value}
}

// Facts are what the operating system says of a host, for one Plan.
type Facts struct {
	Interfaces Fact[[]Interface] `json:"interfaces"`
	// Ports are those of the local ranks.
	Ports []Port `json:"ports"`
	// Paths lead from local ranks to those of other hosts, one for each pair of IP addresses.
	Paths []Path `json:"paths"`
	// Claims has the addresses of ranks in the networks of this host's interfaces.
	Claims  Fact[[]Claim] `json:"claims"`
	Buffer  Fact[Buffer]  `json:"receive_buffer"`
	Offload Fact[Offload] `json:"offload"`
	Clock   Fact[Clock]   `json:"clock"`
	Files   Fact[Files]   `json:"files"`
}

// Interface is a network interface.
type Interface struct {
	Name     string `json:"name"`
	Index    int    `json:"index"`
	Loopback bool   `json:"loopback"`
	Up       bool   `json:"up"`
	// Carrier: the link has a signal.
	Carrier bool `json:"carrier"`
	// MTU is in bytes, with the header of IP.
	MTU       int          `json:"mtu"`
	Addresses []netip.Addr `json:"addresses"`
	// Duplicates are the IPv6 addresses that the kernel does not use, as another station has them.
	Duplicates []netip.Addr `json:"duplicates,omitempty"`
	// ReversePath is the filter for packets whose source is not reached by the interface.
	ReversePath Fact[ReversePath] `json:"reverse_path_filter"`
	Counters    Counters          `json:"counters"`
}

// ReversePath is a mode of the reverse path filter, as in net.ipv4.conf.*.rp_filter.
type ReversePath int

// The modes of the reverse path filter.
const (
	ReversePathOff ReversePath = iota
	ReversePathStrict
	ReversePathLoose
)

// Counters count the packets of an interface since it was made.
type Counters struct {
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// ReceiveErrors are corrupt packets, and those for which the interface had no room. Packets of protocols that the
	// host
	// does not have are not among them.
	ReceiveErrors uint64 `json:"receive_errors"`
	// SendErrors are packets that were not sent, among them those for which the queue had no room.
	SendErrors uint64 `json:"send_errors"`
}

// Port is a port of a local rank.
type Port struct {
	Rank    int            `json:"rank"`
	Network string         `json:"network"` // udp or tcp
	Addr    netip.AddrPort `json:"address"`
	// Held: a process holds it. Holder is that process; nil if it cannot be seen.
	Held   bool               `json:"held"`
	Holder *bindfault.Process `json:"holder,omitempty"`
	// Drops counts datagrams for which the receive buffer of the socket had no room.
	Drops uint64 `json:"drops"`
	// Unknown is why it is not known whether the port is held.
	Unknown string `json:"unknown,omitempty"`
}

// Path leads from a local rank to one of another host.
type Path struct {
	Rank int        `json:"rank"`
	Peer int        `json:"peer"`
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	// Length is that of the longest packet which the path has to carry, in bytes, with the headers of IP and UDP.
	// Fixed: a
	// link has datagrams of this length whatever the path carries.
	Length int         `json:"length"`
	Fixed  bool        `json:"fixed"`
	Route  Fact[Route] `json:"route"`
	// Neighbour is the state of the next hop's entry in the table of ARP or neighbour discovery.
	Neighbour Neighbour `json:"neighbour"`
	// Echo is the answer to ICMP echo requests; nil if none was sent.
	Echo *Fact[Echo] `json:"echo,omitempty"`
}

// Route is how packets of a path leave the host.
type Route struct {
	// Refused is why the kernel has no route; the other fields are empty then.
	Refused string `json:"refused,omitempty"`
	// Interface is the one by which packets leave.
	Interface string `json:"interface"`
	// Gateway is the first router; not valid if the peer is in the same network.
	Gateway netip.Addr `json:"gateway"`
	// MTU is the longest packet that the path carries as far as the kernel knows, in bytes; 0 if it does not.
	MTU int `json:"mtu"`
}

// Claim is the answers to ARP requests for an IPv4 address.
type Claim struct {
	Addr      netip.Addr `json:"address"`
	Interface string     `json:"interface"`
	// Stations are the hardware addresses that answered, without those of this host.
	Stations []string `json:"stations"`
}

// Neighbour is the state of an entry of the table of ARP or neighbour discovery.
type Neighbour string

// The states that matter.
const (
	NeighbourNone   Neighbour = ""       // no entry
	NeighbourFailed Neighbour = "failed" // it does not answer
	NeighbourKnown  Neighbour = "known"
)

// Echo is what ICMP echo requests with DF have shown of a path.
type Echo struct {
	// Short and Long: a request in a packet of ShortEcho bytes was answered, and one of the path's length.
	Short bool `json:"short"`
	Long  bool `json:"long"`
}

// Buffer is the receive buffer in bytes that a socket was granted of what the plan has, and the system's limit
// (net.core.rmem_max) for processes without CAP_NET_ADMIN; 0 if unknown.
type Buffer struct {
	Granted int `json:"granted"`
	Limit   int `json:"limit"`
}

// Offload is what the kernel can do for a UDP socket.
type Offload struct {
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
}

// Clock is the clock of the host.
type Clock struct {
	// Source is the clocksource, such as tsc.
	Source string `json:"source"`
	// Synchronized: the wall clock follows a time server.
	Synchronized Fact[bool] `json:"synchronized"`
}

// Files are the file descriptors of a process.
type Files struct {
	// Limit is how many it may have, and Open how many it has; 0 if unknown.
	Limit uint64 `json:"limit"`
	Open  int    `json:"open"`
}

// holder returns the interface that has an address, or nil.
func (f *Facts) holder(a netip.Addr) *Interface {
	for i := range f.Interfaces.Value {
		for _, own := range f.Interfaces.Value[i].Addresses {
			if own == a {
				return &f.Interfaces.Value[i]
			}
		}
	}
	return nil
}

// named returns the interface of a name, or nil.
func (f *Facts) named(name string) *Interface {
	for i := range f.Interfaces.Value {
		if f.Interfaces.Value[i].Name == name {
			return &f.Interfaces.Value[i]
		}
	}
	return nil
}
