package node

import (
	"runtime"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxExtDatagram is the default maximum size in bytes of a datagram of the extended profile over UDP. The size that
// the path carries is discovered.
const maxExtDatagram = 65504

// localTransport is the default transport between ranks of one host that speak the extended profile.
var localTransport = func() config.Transport {
	if runtime.GOOS == "linux" {
		return config.TransportSHM
	}
	return config.TransportUDP
}()

// sharedEagerLimit is the eager limit in bytes between ranks that share memory. Longer messages are faster by single
// copy if they are not cached, or by rendezvous.
const sharedEagerLimit = 16 << 10

// sameHost reports whether two ranks are on one host: they have the same IP address, or both have loopback
// addresses. It depends only on the configuration, so that both ranks get the same answer.
func sameHost(a, b *config.Rank) bool {
	x, y := a.Address.Addr().Unmap(), b.Address.Addr().Unmap()
	return x == y || x.IsLoopback() && y.IsLoopback()
}

// setHostDefaults sets the values that the configuration leaves open and that depend on the hosts of the ranks.
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

// windowBytes returns the maximum number of bytes in flight to a peer over UDP, such that they fit into its receive
// buffer. It assumes that the peer's buffer has the size granted to this rank. The kernel needs half of it.
func windowBytes(granted int) int { return min(granted/2, maxWindowBytes) }

const maxWindowBytes = 4 << 20
