package tcp

import (
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

const (
	// DefaultWriteTimeout is the longest time for which a peer may accept none of the data sent to it.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultSendQueue is half of the data that the extended profile allows in flight to one peer: 512 packets
	// of 32 KiB. A congestion window of that size has seen no loss for a long time; a loss is due, and halves
	// it.
	DefaultSendQueue = 8 << 20
	// DefaultHandshakeTimeout limits the TLS handshake of a new connection.
	DefaultHandshakeTimeout = 5 * time.Second
	// maxShaking limits the concurrent TLS handshakes with one peer; one more closes the oldest.
	maxShaking = 4
	// dialTimeout limits one attempt to connect, without TLS.
	dialTimeout = 5 * time.Second
	// drainTime is the time that Close allows for pending data to reach the peers.
	drainTime = 500 * time.Millisecond
	// acceptPause is the pause after an error of accept, usually a lack of file descriptors.
	acceptPause = 100 * time.Millisecond
	// chunkLen is the length in bytes of a receive buffer.
	chunkLen = protocol.FrameBuffer
	// maxChunks limits the buffers that hold received data of one peer until Recv returns it; they are
	// allocated on demand. Two ranks that send each other 1 MiB at the same time, and call Recv only
	// afterwards, do not block each other; for longer messages the receiver has to call Recv meanwhile.
	maxChunks = 1<<20/chunkLen + 4
	// Keep-alive probes detect a peer whose machine is down within keepAliveIdle + keepAliveCount ×
	// keepAliveInterval.
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
)

// Config configures a Conn: its rank, the rank map, and how it treats its peers.
type Config struct {
	// Rank is the local rank. Map has the addresses of all ranks; the peers are the other ranks of kind
	// rankmap.Software.
	Rank int
	Map  *rankmap.Map
	// Profile returns the profile of the packets exchanged with a peer. Nil means protocol.CloudFPGA for all
	// peers.
	Profile func(peer int) protocol.Profile
	// MaxWords is the length of the longest message accepted from a peer, in words; a longer one breaks the
	// stream. 0 means no limit but the size field's. It does not apply to the extended profile, whose packets
	// are short.
	MaxWords uint32
	// WriteTimeout is the longest time for which a peer may accept none of the data sent to it; then its
	// connection is closed. 0 means DefaultWriteTimeout.
	WriteTimeout time.Duration
	// SendQueue limits the bytes of packets of the extended profile that are queued for the connection to one
	// peer; packets beyond it are lost. 0 means DefaultSendQueue.
	SendQueue int
	// TLS secures the connections; nil means plain TCP. Both sides of a connection must use it, or neither.
	TLS *TLS
	// HandshakeTimeout limits the TLS handshake of a new connection; 0 means DefaultHandshakeTimeout.
	HandshakeTimeout time.Duration
	// Backoff returns the delay before attempt n to connect again, counted from 1. Nil means DefaultBackoff.
	Backoff func(n int) time.Duration

	// answers replaces Conn.answers in tests.
	answers func(*Conn, *link) bool
}

// Limits of DefaultBackoff, before jitter.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// DefaultBackoff doubles from 100 ms to 5 s and subtracts up to a quarter at random, so that the ranks of a
// cluster do not all dial at once.
func DefaultBackoff(n int) time.Duration {
	d := maxBackoff
	if n < 10 {
		d = min(minBackoff<<max(n-1, 0), maxBackoff)
	}
	return d - rand.N(d/4)
}
