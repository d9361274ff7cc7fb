package node

import (
	"runtime"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// loopbackDatagram is the largest datagram in bytes between ranks of one host where
// the configuration does not say.
const loopbackDatagram = 65504

// localTransport is the transport between ranks of one host that speak the extended
// profile where the configuration does not say.
var localTransport = func() config.Transport {
	if runtime.GOOS == "linux" {
		return config.TransportSHM
	}
	return config.TransportUDP
}()

// sameHost reports whether two ranks are on one host as far as the configuration
// tells, so that both of them find the same: they have the same IP address, or both
// a loopback address.
func sameHost(a, b *config.Rank) bool {
	x, y := a.Address.Addr().Unmap(), b.Address.Addr().Unmap()
	return x == y || x.IsLoopback() && y.IsLoopback()
}

// choose fills in what the configuration does not say, and where the ranks are
// matters.
func (l *Link) choose() {
	near := l.sameHost && l.Profile == protocol.Extended
	if l.Transport == "" {
		l.Transport = config.TransportUDP
		if near {
			l.Transport = localTransport
		}
	}
	if l.MaxDatagram == 0 {
		l.MaxDatagram = protocol.MaxDatagram
		if near {
			l.MaxDatagram = loopbackDatagram
		}
	}
}

// crowded reports whether the host of a rank has more ranks than cores.
func crowded(cfg *config.Config, self *config.Rank) bool {
	n := 0
	for i := range cfg.Ranks {
		if sameHost(self, &cfg.Ranks[i]) {
			n++
		}
	}
	return n > runtime.NumCPU()
}

// windowBytes is how many bytes may be in flight to a peer over UDP, so that they
// fit into its socket's buffer: it is taken to have what this rank was granted, of
// which the kernel needs a part for itself.
func windowBytes(granted, payload int) int {
	return max(min(granted/2, maxWindowBytes), 2*payload)
}

const maxWindowBytes = 4 << 20
