package doctor

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// Fact is an answer from the operating system, or the reason why the answer is unknown.
type Fact[T any] struct {
	Value T `json:"value"`
	// Unknown is the reason why Value is unknown. It is empty if Value is known.
	Unknown string `json:"unknown,omitempty"`
}

// NewFact returns a Fact with the given value, or an unknown Fact with err as the reason if err is not nil.
func NewFact[T any](value T, err error) Fact[T] {
	if err != nil {
		return Fact[T]{Unknown: err.Error()}
	}
	return Fact[T]{Value: value}
}

// Facts contains what the operating system of a host answered to the questions of one Plan.
type Facts struct {
	Interfaces Fact[[]Interface] `json:"interfaces"`
	// Ports are the ports of the local ranks.
	Ports []Port `json:"ports"`
	// Paths lead from local ranks to ranks on other hosts. Each pair of IP addresses occurs once.
	Paths []Path `json:"paths"`
	// Claims are the answers to ARP requests. The requests concern those ranks' addresses that are in the networks of
	// this host's interfaces.
	Claims  Fact[[]Claim] `json:"claims"`
	Buffer  Fact[Buffer]  `json:"receive_buffer"`
	Offload Fact[Offload] `json:"offload"`
	// XDP contains the devices of the local ranks whose links may use AF_XDP.
	XDP   []XDP       `json:"xdp,omitempty"`
	Clock Fact[Clock] `json:"clock"`
	Files Fact[Files] `json:"files"`
}

// Interface is a network interface.
type Interface struct {
	Name     string `json:"name"`
	Index    int    `json:"index"`
	Loopback bool   `json:"loopback"`
	Up       bool   `json:"up"`
	// Carrier is set if the interface detects a signal on its link.
	Carrier bool `json:"carrier"`
	// MTU is the maximum length of an IP packet in bytes, including the IP header.
	MTU       int          `json:"mtu"`
	Addresses []netip.Addr `json:"addresses"`
	// Duplicates are the IPv6 addresses of the interface that the kernel does not use because another station uses
	// them.
	Duplicates []netip.Addr `json:"duplicates,omitempty"`
	// ReversePath is the mode of the reverse path filter, which concerns packets whose source is reached through
	// another interface.
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

// Counters counts the packets of an interface since the interface was created.
type Counters struct {
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// ReceiveErrors counts corrupt packets, and packets dropped because the interface had no buffer for them. It does
	// not count packets of protocols that the host does not support.
	ReceiveErrors uint64 `json:"receive_errors"`
	// SendErrors counts packets that could not be sent, including those dropped because the queue was full.
	SendErrors uint64 `json:"send_errors"`
}

// Port is a UDP or TCP port that a local rank uses.
type Port struct {
	Rank    int            `json:"rank"`
	Network string         `json:"network"` // udp or tcp
	Addr    netip.AddrPort `json:"address"`
	// Held is set if a process holds the port. Holder is that process, or nil if it is not visible to this user.
	Held   bool               `json:"held"`
	Holder *bindfault.Process `json:"holder,omitempty"`
	// Drops counts the datagrams dropped because the receive buffer of the socket was full.
	Drops uint64 `json:"drops"`
	// Unknown is the reason why it could not be determined whether the port is held.
	Unknown string `json:"unknown,omitempty"`
}

// Path leads from a local rank to a rank on another host.
type Path struct {
	Rank int        `json:"rank"`
	Peer int        `json:"peer"`
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	// Length is the length in bytes of the longest packet that the path must carry, including the IP and UDP headers.
	// Fixed is set if a link sends datagrams of this length even if they exceed the path's MTU.
	Length int         `json:"length"`
	Fixed  bool        `json:"fixed"`
	Route  Fact[Route] `json:"route"`
	// Neighbour is the state of the path's next hop in the ARP or neighbour discovery table.
	Neighbour Neighbour `json:"neighbour"`
	// Echo is the result of ICMP echo requests on the path. It is nil if none were sent.
	Echo *Fact[Echo] `json:"echo,omitempty"`
}

// Route describes how packets of a path leave the host.
type Route struct {
	// Refused is the reason why the kernel found no route. If it is set, the other fields are empty.
	Refused string `json:"refused,omitempty"`
	// Interface is the name of the interface through which packets leave.
	Interface string `json:"interface"`
	// Gateway is the address of the first router. It is invalid if no router is needed because the peer is in the same
	// network.
	Gateway netip.Addr `json:"gateway"`
	// MTU is the length in bytes of the longest packet that the path carries, according to the kernel, or 0 if
	// unknown.
	MTU int `json:"mtu"`
}

// Claim holds the answers to ARP requests for an IPv4 address.
type Claim struct {
	Addr      netip.Addr `json:"address"`
	Interface string     `json:"interface"`
	// Stations are the hardware addresses of the stations that answered, except this host's own.
	Stations []string `json:"stations"`
}

// Neighbour is the state in which the ARP or neighbour discovery table lists a station.
type Neighbour string

// The states that the checks distinguish.
const (
	NeighbourNone   Neighbour = ""       // no entry
	NeighbourFailed Neighbour = "failed" // the neighbour does not answer
	NeighbourKnown  Neighbour = "known"
)

// Echo is the result of sending ICMP echo requests with DF on a path.
type Echo struct {
	// Short is set if a request in a packet of ShortEcho bytes was answered. Long is set if a request in a packet of
	// the path's length was answered.
	Short bool `json:"short"`
	Long  bool `json:"long"`
}

// Buffer describes the receive buffer of a socket, in bytes. Granted is the size granted to a socket that requests the
// plan's size. Limit is the system's limit (net.core.rmem_max) for processes without CAP_NET_ADMIN, or 0 if unknown.
type Buffer struct {
	Granted int `json:"granted"`
	Limit   int `json:"limit"`
}

// XDP describes whether the datagrams of a local rank can use AF_XDP.
type XDP struct {
	Rank int `json:"rank"`
	// Device has the rank's address, Driver is the name of its driver, and Queues the number of its receive queues.
	Device string `json:"device,omitempty"`
	Driver string `json:"driver,omitempty"`
	Queues int    `json:"queues,omitempty"`
	// Problem is the reason why AF_XDP is not possible, and Filtered is set if the only reason is the packet filter of
	// the host, which path: xdp bypasses.
	Problem  string `json:"problem,omitempty"`
	Filtered bool   `json:"filtered,omitempty"`
}

// Offload lists the UDP offload features that the kernel supports.
type Offload struct {
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
}

// Clock is the clock of the host.
type Clock struct {
	// Source is the clocksource, such as tsc.
	Source string `json:"source"`
	// Synchronized reports whether the wall clock is synchronized with a time server.
	Synchronized Fact[bool] `json:"synchronized"`
}

// Files describes how many file descriptors a process may use and uses.
type Files struct {
	// Limit is the maximum number of open files. Open is the current number, or 0 if unknown.
	Limit uint64 `json:"limit"`
	Open  int    `json:"open"`
}

// findByAddress returns the interface that has an address, or nil.
func (f *Facts) findByAddress(a netip.Addr) *Interface {
	for i := range f.Interfaces.Value {
		for _, own := range f.Interfaces.Value[i].Addresses {
			if own == a {
				return &f.Interfaces.Value[i]
			}
		}
	}
	return nil
}

// findByName returns the interface with the given name, or nil if it does not exist.
func (f *Facts) findByName(name string) *Interface {
	for i := range f.Interfaces.Value {
		if f.Interfaces.Value[i].Name == name {
			return &f.Interfaces.Value[i]
		}
	}
	return nil
}
