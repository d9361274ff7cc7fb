package path

import (
	"fmt"
	"net/netip"
	"time"
)

// EmulatorCommand is the first argument with which a program starts itself as the emulator of a path. It is for
// internal use.
const EmulatorCommand = "path-emulator"

// Config describes a path. Both directions have the same properties.
type Config struct {
	// RTT is the round-trip time of a small packet when the queues are empty.
	RTT time.Duration
	// Rate is the capacity in bytes per second, including IP headers.
	Rate int
	// Queue is the maximum number of bytes in the queue and in transmission. Packets beyond it are dropped. 0 means
	// Rate times RTT, but at least the size of minPackets packets.
	Queue int
	// MTU is the maximum length of a packet.
	MTU int
	// Loss, Reorder and Duplicate are percentages of the packets that leave the queue. Late is the extra delay of
	// reordered packets and of the second copies of duplicated packets.
	Loss, Reorder, Duplicate float64
	Late                     time.Duration
	// Seed determines which packets are affected, by their numbers in each direction.
	Seed int
	// TCP is the Linux name of the congestion control for connections through the path. If it is empty, they use the
	// default of this machine.
	TCP string
	// Settings are sysctl values for the namespaces, such as net.ipv4.tcp_wmem. Settings unknown to the kernel are
	// ignored.
	Settings map[string]string
}

// minPackets is the minimum length of the queue, in packets of maximum size. It is needed because RTT times Rate is
// only a few packets at an RTT of 2 ms, whereas hosts send several packets back to back.
const minPackets = 16

// Limits for the values of a Config. 576 bytes is the packet length that every host must accept (RFC 791).
const (
	minMTU  = 576
	maxMTU  = 65535
	maxRTT  = 10 * time.Second
	maxRate = 10 << 30
)

// Check returns an error that names a value that is out of range, or nil.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}

// withDefaults returns the configuration with defaults set, or an error that names a value that is out of range.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.RTT < 0 || c.RTT > maxRTT:
		return c, fmt.Errorf("round trip of %v: give 0s to %v", c.RTT, maxRTT)
	case c.Rate < 1 || c.Rate > maxRate:
		return c, fmt.Errorf("rate of %d bytes/s: give 1 to %d", c.Rate, maxRate)
	case c.MTU < minMTU || c.MTU > maxMTU:
		return c, fmt.Errorf("MTU of %d bytes: give %d to %d", c.MTU, minMTU, maxMTU)
	case c.Queue < 0:
		return c, fmt.Errorf("queue of %d bytes: give 0 or more", c.Queue)
	case c.Late < 0 || c.Late > maxRTT:
		return c, fmt.Errorf("lateness of %v: give 0s to %v", c.Late, maxRTT)
	}
	for _, p := range []float64{c.Loss, c.Reorder, c.Duplicate} {
		if !(p >= 0 && p <= 100) {
			return c, fmt.Errorf("%v %% of the packets: give 0 to 100", p)
		}
	}
	if c.Queue == 0 {
		c.Queue = max(int(float64(c.Rate)*c.RTT.Seconds()), minPackets*c.MTU)
	}
	return c, nil
}

// Addr returns the address of an end of the path. end is 0 or 1.
func Addr(end int) netip.Addr { return endAddrs[end] }

// endAddrs holds the IP addresses of the path's two ends.
var endAddrs = []netip.Addr{netip.AddrFrom4([4]byte{10, 77, 0, 1}), netip.AddrFrom4([4]byte{10, 77, 0, 2})}
