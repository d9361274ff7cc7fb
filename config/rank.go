package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// Rank is one rank of the cluster.
type Rank struct {
	// Rank is the rank number, 0 … number of ranks - 1.
	Rank int `yaml:"rank"`
	// Address is the address at which the rank receives. If the file sets no port, the port is protocol.Port plus the
	// number of lower ranks with the same IP address, as in upstream's CPU library.
	Address Address `yaml:"address"`
	// Run makes the rank a local rank of this daemon. If it is empty, the rank is remote.
	Run Run `yaml:"run,omitempty"`
	// Peer is the kind of node that other ranks expect this rank to be. It is required for a remote rank. By default, a
	// stand-in is PeerFPGA and a host is PeerSoftware.
	Peer Peer `yaml:"peer,omitempty"`
	// Allow lists the users who may attach to a host rank. If it is nil, the members of the daemon's group may,
	// provided that the control socket is group-writable.
	Allow *AccessList `yaml:"allow,omitempty"`
	// Kernel is the kernel of a stand-in; the default is echo.
	Kernel Kernel `yaml:"kernel,omitempty"`
	// KernelOptions is set for every stand-in, and nil for all other ranks.
	KernelOptions *KernelOptions `yaml:"kernel_options,omitempty"`
	// Quirks is set for every rank for which PlaysFPGA is true, and empty for all other ranks.
	Quirks Quirks `yaml:"quirks,omitempty"`
	// Timing is set for every rank for which PlaysFPGA is true. For other local ranks, an empty Timing means
	// TimingDefault.
	Timing Timing `yaml:"timing,omitempty"`
	// Faults are injected into the datagrams that a stand-in sends and receives. If it is nil, there are no faults.
	Faults *impair.Script `yaml:"faults,omitempty"`
	// Link overrides Config.Defaults for the link to this rank, unless it is nil.
	Link *LinkOptions `yaml:"link,omitempty"`
}

// Run is the role of a local rank.
type Run = state.Role

// Roles of local ranks.
const (
	RunHost    = state.RoleHost
	RunStandin = state.RoleStandin
)

// Peer is the kind of node that other ranks expect a rank to be.
type Peer = state.Kind

// Kinds of peers.
const (
	PeerFPGA     = state.KindFPGA
	PeerCPU      = state.KindCPU
	PeerSoftware = state.KindSoftware
)

// noRank marks an entry without a number.
const noRank = -1

// SetDefaults distinguishes an entry without a number from the entry of rank 0.
func (r *Rank) SetDefaults() { r.Rank = noRank }

// IsLocal reports whether this daemon runs the rank.
func (r *Rank) IsLocal() bool { return r.Run != "" }

// Address is an IP address and port. Its text form may omit the port.
type Address struct{ netip.AddrPort }

// UnmarshalText parses "10.0.0.1", "10.0.0.1:2718", "fd00::1" or "[fd00::1]:2718". Without a port, Port is 0.
func (a *Address) UnmarshalText(text []byte) error {
	s := string(text)
	if ip, err := netip.ParseAddr(s); err == nil {
		a.AddrPort = netip.AddrPortFrom(ip.Unmap(), 0)
		return nil
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		return fmt.Errorf("%s is not an address: give an IP address, or IP:port as in 10.12.200.5:2718",
			strictyaml.Quote(s))
	}
	if ap.Port() == 0 {
		return errors.New("port 0 cannot be a destination: give 1 to 65535, or leave it out")
	}
	a.AddrPort = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	return nil
}

// Quirks selects whether a stand-in imitates the peculiarities of the deployed FPGA's MPE on the wire, such as
// padding, one deferred header for each rank and one ACK for each message. Source: upstream's MPE.
type Quirks string

// Values of Quirks.
const (
	// QuirksOn imitates all of them.
	QuirksOn Quirks = "on"
	// QuirksOff sends and answers as zrlmpid does.
	QuirksOff Quirks = "off"
)

// timing returns the default timing of a stand-in.
func (q Quirks) timing() Timing {
	if q == QuirksOn {
		return TimingDeployed
	}
	return TimingDefault
}

// Timing selects the retransmission timeouts of a local rank. It does not affect links of the extended profile, whose
// timeouts follow from measured round trips.
type Timing string

// Values of Timing.
const (
	// TimingDeployed selects the timeouts of the deployed node that the rank replaces: an FPGA, or upstream's CPU
	// library, which sets no deadlines.
	TimingDeployed Timing = "deployed"
	// TimingDefault selects zrlmpid's timeouts, with the deadlines of the link.
	TimingDefault Timing = "default"
)

// PlaysFPGA reports whether the rank is a stand-in that behaves like an FPGA, and that other ranks treat as one.
func (r *Rank) PlaysFPGA() bool {
	return r.Run == RunStandin && r.Peer == PeerFPGA && !r.Kernel.BypassesEngine()
}

// setDerived sets the values that depend on other keys of the file.
func (c *Config) setDerived() {
	for i := range c.Ranks {
		rank := &c.Ranks[i]
		switch rank.Run {
		case RunHost:
			rank.Peer = cmp.Or(rank.Peer, PeerSoftware)
		case RunStandin:
			rank.Peer = cmp.Or(rank.Peer, PeerFPGA)
			rank.Kernel.Name = cmp.Or(rank.Kernel.Name, KernelEcho)
			if rank.PlaysFPGA() {
				rank.Quirks = cmp.Or(rank.Quirks, QuirksOn)
				rank.Timing = cmp.Or(rank.Timing, rank.Quirks.timing())
			}
			if rank.KernelOptions == nil {
				rank.KernelOptions = new(KernelOptions)
			}
		}
	}
	c.fillPorts()
}

// fillPorts assigns ports to ranks without a port, as upstream does: on each IP address, the first rank gets
// protocol.Port, and each further rank the next port.
func (c *Config) fillPorts() {
	byRank := make([]*Rank, len(c.Ranks))
	for i := range c.Ranks {
		byRank[i] = &c.Ranks[i]
	}
	slices.SortStableFunc(byRank, func(a, b *Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	lower := make(map[netip.Addr]int, len(byRank))
	for _, rank := range byRank {
		ip := rank.Address.Addr()
		port := protocol.Port + lower[ip]
		lower[ip]++
		// Beyond the last port, the port remains 0, which Validate reports.
		if ip.IsValid() && rank.Address.Port() == 0 && port <= 65535 {
			rank.Address.AddrPort = netip.AddrPortFrom(ip, uint16(port))
		}
	}
}
