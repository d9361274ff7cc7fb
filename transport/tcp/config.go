package tcp

import (
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

const (
	// DefaultWriteTimeout is how long a peer may take none of what is sent
	// to it.
	DefaultWriteTimeout = 10 * time.Second
	// DefaultSendQueue is half of what the extended profile lets one peer have
	// under way: 512 packets of 32 KiB. A window of that size has met no loss
	// for so long that it is due for one, and halves.
	DefaultSendQueue = 8 << 20
	// DefaultHandshakeTimeout is how long a new connection's TLS handshake
	// may take.
	DefaultHandshakeTimeout = 5 * time.Second
	// maxShaking is how many connections of one peer may be in their TLS
	// handshake at once; one more ends the oldest.
	maxShaking = 4
	// dialTimeout bounds one attempt to connect, without TLS.
	dialTimeout = 5 * time.Second
	// drainTime is how long Close waits for the peers to take what is
	// still to be written to them.
	drainTime = 500 * time.Millisecond
	// acceptPause is the pause after an error of accept, which is mostly a
	// lack of file descriptors.
	acceptPause = 100 * time.Millisecond
	// chunkLen is the length in bytes of a buffer for one arrival.
	chunkLen = protocol.FrameBuffer
	// maxChunks is how many buffers hold the arrivals of one peer that wait
	// for Recv, at most; they are made as they are needed. Two ranks that send
	// each other 1 MiB at once, and call Recv only then, do not block each
	// other; of longer messages the receiver has to call Recv meanwhile.
	maxChunks = 1<<20/chunkLen + 4
	// Keep-alive probes detect a peer whose machine is down within
	// keepAliveIdle + keepAliveCount × keepAliveInterval.
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
)

// Config says which rank a Conn is, and how it treats its peers.
type Config struct {
	// Rank is the local rank, and Map says where it and its peers are. The
	// peers are the other ranks of kind rankmap.Software.
	Rank int
	Map  *rankmap.Map
	// Profile returns the profile of the packets exchanged with a peer. Nil
	// is protocol.CloudFPGA for all.
	Profile func(peer int) protocol.Profile
	// MaxWords is the longest message that a peer may send, in words; a
	// longer one breaks the stream. 0 is no limit but the size field's. The
	// extended profile has no such limit: its packets are short.
	MaxWords uint32
	// WriteTimeout is how long a peer may take none of what is sent to it
	// until its connection is closed; 0 is DefaultWriteTimeout.
	WriteTimeout time.Duration
	// SendQueue is how many bytes of packets of the extended profile wait for
	// the connection to one peer; 0 is DefaultSendQueue. More are lost.
	SendQueue int
	// TLS is what connections are secured with; nil is plain TCP. Both sides
	// of a connection have it, or neither.
	TLS *TLS
	// HandshakeTimeout is how long a new connection's TLS handshake may take;
	// 0 is DefaultHandshakeTimeout.
	HandshakeTimeout time.Duration
	// Backoff returns how long to wait before attempt n, counted from 1, to
	// connect again. Nil is DefaultBackoff.
	Backoff func(n int) time.Duration

	// answers is Conn.answers, or what a test says.
	answers func(*Conn, *link) bool
}

// The bounds of DefaultBackoff, before jitter.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// DefaultBackoff doubles from 100 ms to 5 s, and takes off up to a quarter at
// random, so that the ranks of a cluster do not all call at once.
func DefaultBackoff(n int) time.Duration {
	d := maxBackoff
	if n < 10 {
		d = min(minBackoff<<max(n-1, 0), maxBackoff)
	}
	return d - rand.N(d/4)
}
