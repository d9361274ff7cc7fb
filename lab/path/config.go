package path

import (
	"fmt"
	"net/netip"
	"time"
)

// EmulatorCommand is the first argument of the running program when it is started as the
// emulator of a path. Users do not type it.
const EmulatorCommand = "path-emulator"

// Config describes a path. Both directions are alike.
type Config struct {
	// RTT is the time of a round trip of small packets while the queues are empty.
	RTT time.Duration
	// Rate is how many bytes of IP packets pass in a second.
	Rate int
	// Queue is how many bytes may wait or be under transmission; packets beyond that are
	// lost. 0 is the product of Rate and RTT, and at least minPackets packets.
	Queue int
	// MTU is the length of the longest packet.
	MTU int
	// Loss, Reorder and Duplicate are percentages of packets behind the queue. Reordered
	// packets and the second ones of duplicates are delayed by Late.
	Loss, Reorder, Duplicate float64
	Late                     time.Duration
	// Seed decides which packets these are: by their numbers in their direction.
	Seed int
	// TCP is the congestion control of connections through the path, as Linux names it; ""
	// is the default of this machine.
	TCP string
	// Settings are those of sysctl in the namespaces, such as net.ipv4.tcp_wmem. Those
	// that this kernel does not have are ignored.
	Settings map[string]string
}

// minPackets is how many packets of the MTU a queue holds at least: at 2 ms the product of
// rate and round trip is few packets, and hosts send several in a row.
const minPackets = 16

// The bounds of a Config. 576 bytes are what every host takes by RFC 791.
const (
	minMTU  = 576
	maxMTU  = 65535
	maxRTT  = 10 * time.Second
	maxRate = 10 << 30
)

// Check returns an error that says which value is out of range, or nil.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

// complete returns the configuration with its defaults. The error says which value is out
// of range.
func (c Config) complete() (Config, error) {
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

// Addr returns the address of an end of a path, 0 or 1.
func Addr(end int) netip.Addr { return ends[end] }

// ends are the addresses of the two ends.
var ends = []netip.Addr{netip.AddrFrom4([4]byte{10, 77, 0, 1}), netip.AddrFrom4([4]byte{10, 77, 0, 2})}
