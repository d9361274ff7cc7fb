package standin

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// Simulation is the state of a role in simulation, of kernels rtl and rtl-net.
type Simulation struct {
	// Cycle is how many cycles the simulation has taken since it was started last.
	Cycle uint64 `json:"cycle"`
	// Signal is the signal of the role that holds the exchange up, since cycle Since. It is
	// empty while that waits for the network.
	Signal string `json:"signal,omitempty"`
	Since  uint64 `json:"since_cycle"`
	// Text describes what the exchange waits for.
	Text string `json:"text"`
	// Fault: the role has broken the rules of its interface, and its rank exchanges nothing more.
	Fault bool `json:"fault,omitempty"`
	// Datagrams counts those of a simulation with an MPE of its own.
	Datagrams *cosim.NetworkStats `json:"datagrams,omitempty"`
	// TCP counts chunks and connections of one with streams of TCP.
	TCP *TCPStats `json:"tcp,omitempty"`
}

// TCPStats counts chunks and connections.
type TCPStats struct {
	cosim.TCPStats
	ConnectionStats
}

// ConnectionStats counts TCP connections of a role.
type ConnectionStats struct {
	// Open are those that there are.
	Open int `json:"connections"`
	// Accepted were opened by other ranks, and Opened by the role.
	Accepted uint64 `json:"accepted"`
	Opened   uint64 `json:"opened"`
	// Unknown came from addresses that are no rank's, and Limit while there were as many as the shell has.
	Unknown uint64 `json:"closed_unknown_address"`
	Limit   uint64 `json:"closed_limit"`
	// Failed is how often the role's bytes could not be written, as the connection was not opened or has ended, and Dropped how many
	// they were.
	Failed  uint64 `json:"failed"`
	Dropped uint64 `json:"dropped_bytes"`
}

// Simulated is a Kernel of a role in simulation.
type Simulated interface {
	Kernel
	// Cycle returns how often the simulation was started, 0 for not yet, and the cycle that it has reported last. It may be called at any time.
	Cycle() (simulation, cycle uint64)
	// CycleAt returns what Cycle had returned at a time of the last half second, or false if that is not known, as before the first start.
	CycleAt(t time.Time) (simulation, cycle uint64, ok bool)
}

// Wired is a Kernel that exchanges datagrams itself, in the place of its rank's engine.
type Wired interface {
	Kernel
	// Connect gives the kernel its wire, before Run.
	Connect(w Wire)
}

// Wire carries the datagrams of a rank. Recv is that of mpe.Transport, and runs concurrently with the
// other methods.
type Wire interface {
	Recv(batch []mpe.RxPacket) (int, error)
	// SendDatagram sends a datagram to a rank. The bytes are the caller's again when it returns.
	SendDatagram(peer int, datagram []byte) error
	// Record records a datagram that was sent, or has arrived, for captures.
	Record(peer int, sent bool, datagram []byte)
	// Addresses returns the address and UDP port of each rank.
	Addresses() []netip.AddrPort
	Close() error
}

// Holds returns what the role holds the exchange up with, or an empty string.
func (s *Simulation) Holds() string {
	if s == nil || s.Signal == "" {
		return ""
	}
	if s.Fault {
		return fmt.Sprintf("%s at cycle %d: %s", s.Signal, s.Since, s.Text)
	}
	return fmt.Sprintf("%s since cycle %d (now %d): %s", s.Signal, s.Since, s.Cycle, s.Text)
}
