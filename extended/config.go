package extended

import (
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Instant is a point in time: nanoseconds since an epoch that the caller
// chooses and keeps. Only differences matter.
type Instant = time.Duration

// maxWindow is the most that Config.Window may be: the most packets in flight (E28), and how far
// beyond the first missing packet a packet is examined (E32).
const maxWindow = 1 << 14

// Defaults of Config.
const (
	defaultPayload    = 1416 - protocol.ExtHeaderLen
	defaultEagerLimit = 65536
	defaultMessages   = 65536
	defaultEagerBytes = 1 << 20
	// defaultWindowBytes is more than a window of packets of 1416 bytes.
	defaultWindowBytes = 4 << 20
)

// Config fixes the exchange of one local rank with one peer. A field that is 0 has its
// default; one that is out of range, the nearest value in it.
type Config struct {
	// Local and Remote are the two ranks.
	Local, Remote uint32
	// MaxPayload is the most payload bytes of a packet of ours; by default
	// those of a datagram of 1416 bytes, and at most those of one of
	// protocol.MaxUDPDatagram bytes (E1).
	MaxPayload int
	// EagerLimit is the longest message that is sent without being asked for
	// (E11), in bytes: 65536 by default, none at all if it is negative.
	EagerLimit int
	// MaxLength is the longest announced message that is accepted (E17), in
	// bytes; by default as long as the wire can say.
	MaxLength int64
	// Messages and EagerBytes are what the peer may send before a receive
	// matches (E20): 65536 messages and 1 MiB by default.
	Messages, EagerBytes int
	// Room, if not nil, has more messages for the peer, beyond Messages. It is of all Conns of the local rank.
	Room *Room
	// Window is the most packets in flight (E28), up to 16384, the default: more than 512 only on a
	// long path, and if the peer takes them. The peer is offered as many, but at least 512.
	Window int
	// WindowBytes is the most payload bytes in flight (E28), more on a long path; 4 MiB by
	// default. It lets one packet go, whatever its size. With less than two
	// full packets, each has to be acknowledged before the next one.
	WindowBytes int
	// HeaderChecksum: the checksum of our packets covers the header alone
	// (E43). It is for ranks on one host: memory carries the packets between
	// them. What the peer sends is checked as it says.
	HeaderChecksum bool
	// Discover: of MaxPayload, packets have what the path carries, which is found by probes
	// (E36). It is for networks that fragment only what they are asked to; the caller
	// answers AskLink.
	Discover bool
	// ShortHeaders: memory carries the packets, so eager messages of one packet may bear a short
	// header, and no congestion window applies (E52).
	ShortHeaders bool
	// Reliable is true on a transport that retransmits by itself and whose
	// new connections are reported by Reconnected.
	Reliable bool
	// Job is true if the peer is a rank of our job: it closes its session in MPI_Finalize, and does not return when it
	// has ended. So what is sent to it later fails.
	Job bool
	// Timing is DefaultTiming(Reliable) by default.
	Timing Timing
	// Seed makes the sessions and the jitter. It must be another one for
	// each peer and each start of the program.
	Seed uint64

	// firstPacket and firstMessage are the first numbers of a session, 1
	// unless a test wants to see them wrap around.
	firstPacket, firstMessage uint32
}

// Timing holds the times of section 14. A field that is 0 has its default,
// except UnreachableAfter.
type Timing struct {
	// InitialRTO and MaxRTO are the first and the longest time-out; it is at least
	// MinRTO longer than the round trip (E30).
	InitialRTO, MinRTO, MaxRTO time.Duration
	// AckDelay is the longest that an acknowledgement waits (E26).
	AckDelay time.Duration
	// UnreachableAfter is how long a peer may be silent (E31, E33); 0 is forever.
	UnreachableAfter time.Duration
	// HelloFirst and HelloMax are the first and the longest time between
	// HELLOs (E7).
	HelloFirst, HelloMax time.Duration
}

// DefaultTiming returns the times of section 14, over TCP if reliable.
func DefaultTiming(reliable bool) Timing {
	t := Timing{
		InitialRTO:       time.Second,
		MinRTO:           5 * time.Millisecond,
		MaxRTO:           time.Second,
		AckDelay:         time.Millisecond,
		UnreachableAfter: 10 * time.Second,
		HelloFirst:       20 * time.Millisecond,
		HelloMax:         time.Second,
	}
	if reliable {
		t.MinRTO = 200 * time.Millisecond
	}
	return t
}

// complete returns the configuration with its defaults.
func (c Config) complete() Config {
	c.MaxPayload = within(c.MaxPayload, defaultPayload, 1, protocol.MaxUDPDatagram-protocol.ExtHeaderLen)
	if c.Discover {
		c.MaxPayload = max(c.MaxPayload&^7, 8)
	}
	c.EagerLimit = within(c.EagerLimit, defaultEagerLimit, -1, math.MaxInt32)
	c.MaxLength = within[int64](c.MaxLength, math.MaxUint32, 0, math.MaxUint32)
	c.Messages = within(c.Messages, defaultMessages, 1, maxMessages)
	c.EagerBytes = within(c.EagerBytes, defaultEagerBytes, max(c.EagerLimit, 0), math.MaxInt32)
	c.Window = within(c.Window, maxWindow, 1, maxWindow)
	c.WindowBytes = within(c.WindowBytes, defaultWindowBytes, 1, math.MaxInt32)
	if c.Timing == (Timing{}) {
		c.Timing = DefaultTiming(c.Reliable)
	}
	t, d := &c.Timing, DefaultTiming(c.Reliable)
	t.InitialRTO = within(t.InitialRTO, d.InitialRTO, time.Microsecond, math.MaxInt64/8)
	t.MinRTO = within(t.MinRTO, d.MinRTO, time.Microsecond, math.MaxInt64/8)
	t.MaxRTO = within(t.MaxRTO, d.MaxRTO, t.MinRTO, math.MaxInt64/8)
	t.AckDelay = within(t.AckDelay, d.AckDelay, time.Nanosecond, math.MaxInt64/8)
	t.UnreachableAfter = max(t.UnreachableAfter, 0)
	t.HelloFirst = within(t.HelloFirst, d.HelloFirst, time.Microsecond, math.MaxInt64/8)
	t.HelloMax = within(t.HelloMax, d.HelloMax, t.HelloFirst, math.MaxInt64/8)
	if c.firstPacket == 0 {
		c.firstPacket = 1
	}
	if c.firstMessage == 0 {
		c.firstMessage = 1
	}
	return c
}

func within[T int | int64 | time.Duration](v, byDefault, low, high T) T {
	if v == 0 {
		v = byDefault
	}
	return min(max(v, low), high)
}
