package extended

import (
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Instant is a point in time, in nanoseconds since a fixed epoch that the caller chooses. Only differences matter.
type Instant = time.Duration

// maxWindow is the largest valid Config.Window. It therefore limits both the number of packets in flight (E28) and the
// window offered to the peer (E32).
const maxWindow = 1 << 14

// Defaults of Config.
const (
	defaultPayload    = 1416 - protocol.ExtHeaderLen
	defaultEagerLimit = 65536
	defaultMessages   = 65536
	defaultEagerBytes = 1 << 20
	// defaultWindowBytes is large enough for a full window of 1416-byte datagrams, except on a path with a long
	// round-trip time.
	defaultWindowBytes = 4 << 20
)

// Config configures a Conn between one local rank and one peer. A zero field selects the default; a value out of range
// is replaced by the nearest valid one.
type Config struct {
	// Local is the local rank, and Remote the peer's.
	Local, Remote uint32
	// MaxPayload is the maximum payload of the packets that we send, in bytes. By default, packets fit into datagrams
	// of 1416 bytes. The largest valid value fits into datagrams of protocol.MaxUDPDatagram bytes (E1).
	MaxPayload int
	// EagerLimit is the length of the longest message that is sent eagerly (E11), in bytes. The default is 65536; a
	// negative limit disables eager messages.
	EagerLimit int
	// MaxLength is the length of the longest announced message that is accepted (E17), in bytes. The default is the
	// maximum that the wire format allows.
	MaxLength int64
	// Messages is the number of messages, and EagerBytes the number of eager bytes, that the peer may send before
	// receives match them (E20). The defaults are 65536 messages and 1 MiB.
	Messages, EagerBytes int
	// CreditPool, if not nil, grants the peer more messages than Messages. All Conns of the local rank share it.
	CreditPool *CreditPool
	// Window is the maximum number of packets in flight (E28), up to 16384, the default. More than 512 are in flight
	// only on a long path to a peer that accepts them. The Conn accepts the same number from the peer, but at least
	// 512.
	Window int
	// WindowBytes is the maximum payload in flight, in bytes (E28); a long path allows more. The default is 4 MiB. A
	// single packet of any size may always be in flight. If WindowBytes is less than two full packets, each packet
	// waits until the one before it is acknowledged.
	WindowBytes int
	// HeaderChecksum limits the checksum of our packets to the header (E43). It is meant for ranks on one host that
	// exchange packets through shared memory. The peer's choice is independent, because the flags of a packet indicate
	// what its checksum covers.
	HeaderChecksum bool
	// Discover enables path MTU discovery (E36): packets carry as much payload as the path allows, up to MaxPayload.
	// It requires a network that fragments a packet only if the packet allows it, and a caller that answers AskLink.
	Discover bool
	// ShortHeaders is set if shared memory carries the packets. Eager messages of one packet may then use a short
	// header, and no congestion window applies (E52).
	ShortHeaders bool
	// Reliable is set for a transport that retransmits by itself. The caller calls Reconnected when the transport has a
	// new connection.
	Reliable bool
	// Job is set if the peer belongs to the same job as this rank. Such a peer closes its session in MPI_Finalize and
	// does not return after its process has ended, so later sends to it fail.
	Job bool
	// Timing holds the timeouts and intervals of section 14. The default is DefaultTiming(Reliable).
	Timing Timing
	// Seed initializes the generator of random sessions and jitter. It must differ between peers and between runs of
	// the program.
	Seed uint64

	// firstPacket and firstMessage are the first packet and message numbers of a session. They are 1, except in tests
	// of wrap-around.
	firstPacket, firstMessage uint32
}

// Timing configures the timeouts and intervals of section 14. A zero field selects the default, except for
// UnreachableAfter.
type Timing struct {
	// InitialRTO and MaxRTO are the initial and the maximum retransmission timeout. MinRTO is the least time by which
	// the timeout exceeds the smoothed round-trip time (E30).
	InitialRTO, MinRTO, MaxRTO time.Duration
	// AckDelay is the maximum time by which an acknowledgement is delayed (E26).
	AckDelay time.Duration
	// UnreachableAfter is the time after which a silent peer is declared unreachable (E31, E33); 0 means never.
	UnreachableAfter time.Duration
	// HelloFirst and HelloMax are the initial and the maximum interval between HELLOs (E7).
	HelloFirst, HelloMax time.Duration
}

// DefaultTiming returns the times that section 14 specifies: for TCP if reliable, and otherwise for UDP.
func DefaultTiming(reliable bool) Timing {
	timing := Timing{
		InitialRTO:       time.Second,
		MinRTO:           5 * time.Millisecond,
		MaxRTO:           time.Second,
		AckDelay:         time.Millisecond,
		UnreachableAfter: 10 * time.Second,
		HelloFirst:       20 * time.Millisecond,
		HelloMax:         time.Second,
	}
	if reliable {
		timing.MinRTO = 200 * time.Millisecond
	}
	return timing
}

// withDefaults returns the configuration with defaults applied.
func (c Config) withDefaults() Config {
	c.MaxPayload = clampOrDefault(c.MaxPayload, defaultPayload, 1, protocol.MaxUDPDatagram-protocol.ExtHeaderLen)
	if c.Discover {
		c.MaxPayload = max(c.MaxPayload&^7, 8)
	}
	c.EagerLimit = clampOrDefault(c.EagerLimit, defaultEagerLimit, -1, math.MaxInt32)
	c.MaxLength = clampOrDefault[int64](c.MaxLength, math.MaxUint32, 0, math.MaxUint32)
	c.Messages = clampOrDefault(c.Messages, defaultMessages, 1, maxMessages)
	c.EagerBytes = clampOrDefault(c.EagerBytes, defaultEagerBytes, max(c.EagerLimit, 0), math.MaxInt32)
	c.Window = clampOrDefault(c.Window, maxWindow, 1, maxWindow)
	c.WindowBytes = clampOrDefault(c.WindowBytes, defaultWindowBytes, 1, math.MaxInt32)
	if c.Timing == (Timing{}) {
		c.Timing = DefaultTiming(c.Reliable)
	}
	timing, d := &c.Timing, DefaultTiming(c.Reliable)
	timing.InitialRTO = clampOrDefault(timing.InitialRTO, d.InitialRTO, time.Microsecond, math.MaxInt64/8)
	timing.MinRTO = clampOrDefault(timing.MinRTO, d.MinRTO, time.Microsecond, math.MaxInt64/8)
	timing.MaxRTO = clampOrDefault(timing.MaxRTO, d.MaxRTO, timing.MinRTO, math.MaxInt64/8)
	timing.AckDelay = clampOrDefault(timing.AckDelay, d.AckDelay, time.Nanosecond, math.MaxInt64/8)
	timing.UnreachableAfter = max(timing.UnreachableAfter, 0)
	timing.HelloFirst = clampOrDefault(timing.HelloFirst, d.HelloFirst, time.Microsecond, math.MaxInt64/8)
	timing.HelloMax = clampOrDefault(timing.HelloMax, d.HelloMax, timing.HelloFirst, math.MaxInt64/8)
	if c.firstPacket == 0 {
		c.firstPacket = 1
	}
	if c.firstMessage == 0 {
		c.firstMessage = 1
	}
	return c
}

// clampOrDefault returns v, or byDefault if v is 0, limited to the range from low to high.
func clampOrDefault[T int | int64 | time.Duration](v, byDefault, low, high T) T {
	if v == 0 {
		v = byDefault
	}
	return min(max(v, low), high)
}
