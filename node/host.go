package node

import (
	"runtime"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxExtDatagram is the default maximum size in bytes of a datagram of the extended profile over UDP. Path MTU
// discovery finds the size that the path can carry.
const maxExtDatagram = 65504

// localTransport is the default transport between ranks that run on one host and use the extended profile.
var localTransport = func() config.Transport {
	if runtime.GOOS == "linux" {
		return config.TransportSHM
	}
	return config.TransportUDP
}()

// sharedEagerLimit is the eager limit in bytes between ranks that share memory. For longer messages, single copy (if
// the data is not cached) or rendezvous is faster.
const sharedEagerLimit = 16 << 10

// sameHost reports whether two ranks are on one host: they have the same IP address, or both have loopback addresses.
// It depends only on the configuration, so that both ranks get the same result.
func sameHost(a, b *config.Rank) bool {
	x, y := a.Address.Addr().Unmap(), b.Address.Addr().Unmap()
	return x == y || x.IsLoopback() && y.IsLoopback()
}

// setHostDefaults sets each option that the configuration does not set and whose default depends on which ranks share a
// host.
func (l *Link) setHostDefaults() {
	near := l.sameHost && l.Profile == protocol.Extended
	if l.Transport == "" {
		l.Transport = config.TransportUDP
		if near {
			l.Transport = localTransport
		}
	}
	l.fallbackDatagram = l.MaxDatagram
	if l.MaxDatagram == 0 {
		l.MaxDatagram, l.fallbackDatagram = protocol.MaxDatagram, protocol.MaxDatagram
		if l.Profile == protocol.Extended && l.Transport == config.TransportUDP {
			l.MaxDatagram = maxExtDatagram
		}
		if near {
			l.fallbackDatagram = maxExtDatagram
		}
	}
	if l.EagerLimit == eagerLimitUnset {
		l.EagerLimit = eagerLimit
		if l.Transport == config.TransportSHM {
			l.EagerLimit = sharedEagerLimit
		}
	}
}

// busyRanks returns the number of ranks on a rank's host that may need a core at the same time, including programs
// attached to ranks of this process.
func busyRanks(cfg *config.Config, self *config.Rank, attached bool) int {
	n := 0
	for i := range cfg.Ranks {
		r := &cfg.Ranks[i]
		if !sameHost(self, r) {
			continue
		}
		n++
		if attached && r.Run == config.RunHost {
			n++
		}
	}
	return n
}

// windowBytes returns the maximum number of bytes in flight to a peer over UDP that fit in the peer's receive buffer.
// It assumes that this buffer is as large as the buffer granted to this rank, and that the kernel needs half of it.
func windowBytes(granted int) int { return min(granted/2, maxWindowBytes) }

// maxWindowBytes is the limit of the protocol (E28).
const maxWindowBytes = 4 << 20
