package node

import (
	"runtime"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// longestDatagram is the most bytes of a datagram of the extended profile over UDP where the
// configuration does not say: what the path carries is found.
const longestDatagram = 65504

// localTransport is the transport between ranks of one host that speak the extended
// profile where the configuration does not say.
var localTransport = func() config.Transport {
	if runtime.GOOS == "linux" {
		return config.TransportSHM
	}
	return config.TransportUDP
}()

// sharedEagerLimit is the eager limit in bytes between ranks that share memory: longer messages
// are faster by single copy where they are not in the cache, or by rendezvous.
const sharedEagerLimit = 16 << 10

// sameHost reports whether two ranks are on one host by the configuration, so that both of
// them get the same answer: they have the same IP address, or both a loopback address.
func sameHost(a, b *config.Rank) bool {
	x, y := a.Address.Addr().Unmap(), b.Address.Addr().Unmap()
	return x == y || x.IsLoopback() && y.IsLoopback()
}

// choose fills in the values that the configuration does not give and that depend on the
// hosts of the ranks.
func (l *Link) choose() {
	near := l.sameHost && l.Profile == protocol.Extended
	if l.Transport == "" {
		l.Transport = config.TransportUDP
		if near {
			l.Transport = localTransport
		}
	}
	l.fixedDatagram = l.MaxDatagram
	if l.MaxDatagram == 0 {
		l.MaxDatagram, l.fixedDatagram = protocol.MaxDatagram, protocol.MaxDatagram
		if l.Profile == protocol.Extended && l.Transport == config.TransportUDP {
			l.MaxDatagram = longestDatagram
		}
		if near {
			l.fixedDatagram = longestDatagram
		}
	}
	if l.EagerLimit == notSaid {
		l.EagerLimit = eagerLimit
		if l.Transport == config.TransportSHM {
			l.EagerLimit = sharedEagerLimit
		}
	}
}

// busy returns how many ranks of a rank's host may need a core at the same time, programs
// attached to the ranks of this process included.
func busy(cfg *config.Config, self *config.Rank, attached bool) int {
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

// windowBytes returns how many bytes may be in flight to a peer over UDP, so that they fit
// into its socket's receive buffer. The peer is assumed to have a buffer of the size that
// this rank was granted, half of which the kernel needs.
func windowBytes(granted int) int { return min(granted/2, maxWindowBytes) }

const maxWindowBytes = 4 << 20
