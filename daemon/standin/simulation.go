package standin

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Simulated is a Kernel whose role is simulated.
type Simulated interface {
	Kernel
	// Cycle returns the number of times that the simulation was started, and the most recent cycle that it reported. It
	// is safe for concurrent use.
	Cycle() (simulation, cycle uint64)
	// CycleAt returns the values that Cycle would have returned at time t, within the last half second. It returns
	// false if they are unknown.
	CycleAt(t time.Time) (simulation, cycle uint64, ok bool)
}

// WireKernel is a Kernel that exchanges datagrams directly, without the engine of its rank.
type WireKernel interface {
	Kernel
	// Connect sets the Wire that the kernel uses. It is called before Run.
	Connect(w Wire)
}

// Wire carries the datagrams of a rank. Recv works like mpe.Transport.Recv and may run concurrently with the other
// methods.
type Wire interface {
	Recv(batch []mpe.RxPacket) (int, error)
	// SendDatagram sends a datagram to a rank. It does not retain the slice.
	SendDatagram(peer int, datagram []byte) error
	// Record stores a sent or received datagram, so that packet captures include it.
	Record(peer int, sent bool, datagram []byte)
	// Addresses returns the address and UDP port of each rank.
	Addresses() []netip.AddrPort
	Close() error
}
