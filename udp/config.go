package udp

import (
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// DefaultReceiveBuffer is the size in bytes that upstream's library asks the
// kernel to give a rank's socket.
const DefaultReceiveBuffer = 0x1000000

const (
	// ringLen is how many datagrams one Recv returns at most. 64 datagrams
	// hold 88 KiB, about what arrives while a reader wakes up.
	ringLen = 64
	// slotLen is the room for one datagram that arrives, in bytes. It is more
	// than maxRxPacket, so that one which is too long is seen to be.
	slotLen = 2048
	// maxRxPacket is the longest datagram that a peer may send, in bytes: the
	// MPE's output queue lets the last one of a message exceed the others by
	// a line.
	maxRxPacket = protocol.MaxDatagram + protocol.LineLen
	// sendBatch is how many datagrams one system call sends at most.
	sendBatch = 64
)

// MaxDatagram is the most bytes that a datagram can have over IPv4.
const MaxDatagram = 65507

// Config says which rank a Conn is, and how it treats its peers.
type Config struct {
	// Rank is the local rank, and Map says where it and its peers are.
	Rank int
	Map  *rankmap.Map
	// Socket, if not nil, is bound to the rank's address already. The Conn owns it unless
	// Listen fails.
	Socket *net.UDPConn
	// ReceiveBuffer is the size in bytes to ask for; 0 is
	// DefaultReceiveBuffer. The kernel may grant less: see
	// Conn.ReceiveBuffer.
	ReceiveBuffer int
	// NoOffload has every datagram go through the kernel alone, where it could
	// segment long pieces and coalesce them again. EnvOffload can set it.
	NoOffload bool
	// Large reports of which peers datagrams of up to MaxDatagram bytes are taken
	// and may be sent to. All others have protocol.MaxDatagram. Nil is none.
	Large func(peer int) bool
	// Impair, if not nil, decides about every datagram to and from peers. Each is then
	// sent and received by a system call of its own.
	Impair *impair.Impairer
	// Pace returns how to pace the messages to a peer. It is asked for every
	// DATA message, by the goroutine that sends. Nil paces none.
	Pace func(peer int) Pacing
}

// Pacing spaces the datagrams of long messages, so that an FPGA's DRAM keeps up:
// an FPGA takes about 1.1 µs for a datagram, and up to 2.3 µs with DRAM; a
// datagram that it drops corrupts the message for good.
type Pacing struct {
	// PerDatagram is the time from the start of one datagram to the start of
	// the next, on average: up to 128 may follow each other closely. 0 sends
	// as fast as the network takes it.
	PerDatagram time.Duration
	// OverWords restricts pacing to messages of more words than this.
	// Upstream's CPU library has 65,536.
	OverWords uint32
}

func (c *Config) large(peer int) bool { return c.Large != nil && peer >= 0 && c.Large(peer) }

// anyLarge reports whether some peer sends large datagrams.
func (c *Config) anyLarge() bool {
	for rank := range c.Map.Size() {
		if c.large(rank) {
			return true
		}
	}
	return false
}
