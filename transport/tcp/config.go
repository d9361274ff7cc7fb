package tcp

import (
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

const (
	// DefaultWriteTimeout is the maximum time for which a peer may accept no data before its connection is closed.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultSendQueue is half of the data that the extended profile allows in flight to one peer, or 512 packets of 32
	// KiB. A congestion window reaches this size only after a long time without loss. If the queue overflows, the
	// dropped packets halve the window.
	DefaultSendQueue = 8 << 20
	// DefaultHandshakeTimeout limits the TLS handshake of a new connection.
	DefaultHandshakeTimeout = 5 * time.Second
	// maxHandshakes is the maximum number of concurrent TLS handshakes with one peer. If another one begins, the
	// oldest is closed.
	maxHandshakes = 4
	// dialTimeout limits one attempt to connect. It does not include the TLS handshake.
	dialTimeout = 5 * time.Second
	// drainTime is the time for which Close waits for pending data to reach the peers.
	drainTime = 500 * time.Millisecond
	// acceptPause is the pause after accept fails, usually because the process has no file descriptors left.
	acceptPause = 100 * time.Millisecond
	// chunkLen is the length in bytes of a receive buffer.
	chunkLen = protocol.FrameBuffer
	// maxChunks is the maximum number of buffers holding data from one peer that Recv has not yet returned.
	// Buffers are allocated on demand. Two ranks can send each other 1 MiB at the same time, and call Recv only
	// afterwards, without blocking each other. To receive longer messages, a rank must call Recv while it
	// sends.
	maxChunks = 1<<20/chunkLen + 4
	// If a peer's machine goes down, keep-alive probes detect it within keepAliveIdle + keepAliveCount ×
	// keepAliveInterval.
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
)

// Config configures a Conn: its rank, the rank map, and how it treats its peers.
type Config struct {
	// Rank is the local rank. Map contains the addresses of all ranks; the peers are the other ranks of kind
	// rankmap.Software.
	Rank int
	Map  *rankmap.Map
	// Profile returns the profile of the packets exchanged with a peer. Nil means protocol.CloudFPGA for all
	// peers.
	Profile func(peer int) protocol.Profile
	// MaxWords is the length in words of the longest message accepted from a peer. A longer message makes the
	// stream invalid. 0 means no limit other than the size field. MaxWords does not apply to the extended
	// profile, whose packets are short.
	MaxWords uint32
	// WriteTimeout is the maximum time for which a peer may accept no data before its connection is closed. 0 means
	// DefaultWriteTimeout.
	WriteTimeout time.Duration
	// SendQueue is the maximum number of bytes of extended-profile packets queued for one peer. Packets that do
	// not fit are dropped. 0 means DefaultSendQueue.
	SendQueue int
	// TLS secures the connections; nil means plain TCP. Both sides of a connection must use it, or neither.
	TLS *TLS
	// HandshakeTimeout limits the TLS handshake of a new connection; 0 means DefaultHandshakeTimeout.
	HandshakeTimeout time.Duration
	// Backoff returns the delay before the nth attempt to reconnect, where n starts at 1. Nil means
	// DefaultBackoff.
	Backoff func(n int) time.Duration

	// isAlive reports whether a connection is alive. It is Conn.answers except in tests, which replace it.
	isAlive func(*Conn, *link) bool
}

// Limits of DefaultBackoff, before jitter.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// DefaultBackoff returns a delay that doubles from 100 ms up to 5 s, less up to a quarter at random, so that the ranks
// of a cluster do not all dial at the same time.
func DefaultBackoff(n int) time.Duration {
	d := maxBackoff
	if n < 10 {
		d = min(minBackoff<<max(n-1, 0), maxBackoff)
	}
	return d - rand.N(d/4)
}
