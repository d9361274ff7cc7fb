package standin

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

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
