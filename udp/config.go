package udp

import (
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// DefaultReceiveBuffer is the size, in bytes, of the receive buffer that upstream's library requests.
const DefaultReceiveBuffer = 0x1000000

const (
	// ringLen is the maximum number of datagrams that one Recv returns. 64 datagrams are 88 KiB, about as much as
	// arrives while the reader is waking up.
	ringLen = 64
	// slotLen is the size of the buffer for one received datagram, in bytes. It exceeds maxRxPacket, so that longer
	// datagrams are detected.
	slotLen = 2048
	// maxRxPacket is the maximum length of a datagram from a peer, in bytes. The last datagram of a message from an MPE
	// may be one line longer than protocol.MaxDatagram.
	maxRxPacket = protocol.MaxDatagram + protocol.LineLen
	// sendBatch is the maximum number of datagrams sent per system call.
	sendBatch = 64
)

// MaxDatagram is the maximum length of a datagram over IPv4, in bytes.
const MaxDatagram = 65507

// Config configures a Conn.
type Config struct {
	// Rank is the local rank. Map contains its address and the addresses of its peers.
	Rank int
	Map  *rankmap.Map
	// Socket is a socket already bound to the rank's address. If it is nil, Listen binds one. The Conn takes ownership
	// of Socket unless Listen fails.
	Socket *net.UDPConn
	// ReceiveBuffer is the requested size of the receive buffer, in bytes. 0 means DefaultReceiveBuffer. The kernel may
	// grant less: see Conn.ReceiveBuffer.
	ReceiveBuffer int
	// NoOffload disables UDP segmentation and receive offload, so that each datagram passes through the kernel
	// separately. EnvOffload can set it as well.
	NoOffload bool
	// Large reports whether datagrams of up to MaxDatagram bytes are accepted from a peer and may be sent to it. For
	// all other peers the limit is protocol.MaxDatagram. If Large is nil, there are no large datagrams.
	Large func(peer int) bool
	// Impair injects faults into the datagrams to and from peers. If it is not nil, each datagram is sent and received
	// by a separate system call.
	Impair *impair.Impairer
	// OpenPath, if it is not nil, opens a path past the kernel's socket. UsesPath reports whether datagrams to a peer may
	// use it; if it is nil, all may.
	OpenPath OpenPath
	UsesPath func(peer int) bool
	// Pace returns the pacing of messages to a peer. The sending goroutine calls it for every DATA message. If Pace is
	// nil, messages are not paced.
	Pace func(peer int) Pacing
}

// Pacing determines how the datagrams of long messages are spaced, so that an FPGA can keep up. An FPGA needs about 1.1
// µs per datagram, and up to 2.3 µs with DRAM. If it drops a datagram, the message is corrupt and is not
// retransmitted.
type Pacing struct {
	// PerDatagram is the average interval between two datagrams. Up to 128 datagrams may be sent back to back. 0
	// disables pacing.
	PerDatagram time.Duration
	// OverWords restricts pacing to messages of more words than this. Upstream's CPU library uses 65,536.
	OverWords uint32
}

func (c *Config) acceptsLarge(peer int) bool { return c.Large != nil && peer >= 0 && c.Large(peer) }

// hasLargePeer reports whether any peer may send large datagrams.
func (c *Config) hasLargePeer() bool {
	for rank := range c.Map.Size() {
		if c.acceptsLarge(rank) {
			return true
		}
	}
	return false
}
