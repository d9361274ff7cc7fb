package standin

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Simulated is a Kernel with a simulated role.
type Simulated interface {
	Kernel
	// Cycle returns the number of starts of the simulation, 0 before the first one, and the last cycle
	// reported. It is safe for concurrent use.
	Cycle() (simulation, cycle uint64)
	// CycleAt returns the result of Cycle at a time within the last half second, or false if it is not known.
	CycleAt(t time.Time) (simulation, cycle uint64, ok bool)
}

// Wired is a Kernel that exchanges datagrams itself, instead of its rank's engine.
type Wired interface {
	Kernel
	// Connect sets the kernel's wire. It is called before Run.
	Connect(w Wire)
}

// Wire carries the datagrams of a rank. Recv is like mpe.Transport.Recv, and runs concurrently with the other
// methods.
type Wire interface {
	Recv(batch []mpe.RxPacket) (int, error)
	// SendDatagram sends a datagram to a rank. It does not keep the slice.
	SendDatagram(peer int, datagram []byte) error
	// Record records a sent or received datagram for captures.
	Record(peer int, sent bool, datagram []byte)
	// Addresses returns the address and UDP port of each rank.
	Addresses() []netip.AddrPort
	Close() error
}
