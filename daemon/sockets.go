package daemon

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/rankmap"
	"github.com/zrlmpi/zrlmpid/tcp"
	"github.com/zrlmpi/zrlmpid/udp"
)

// sockets are what one rank is bound to. One that no link uses is nil.
type sockets struct {
	udp *udp.Conn
	tcp *tcp.Conn
}

// bind binds the rank to its address. The error is that of the transport, which
// names rank and address and says what to do.
func (r *localRank) bind(m *rankmap.Map, cfg *config.Config) (err error) {
	if r.uses(config.TransportUDP) {
		r.sockets.udp, err = udp.Listen(udp.Config{
			Rank: r.cfg.Rank, Map: m, ReceiveBuffer: int(cfg.Limits.ReceiveBuffer),
			Pace: func(peer int) udp.Pacing {
				p := r.links[peer].Pace
				return udp.Pacing{PerDatagram: p.PerDatagram, OverWords: uint32(p.OverWords)}
			},
		})
		if err != nil {
			return err
		}
	}
	if r.uses(config.TransportTCP) {
		var peers *rankmap.Map
		if peers, err = r.tcpMap(m); err != nil {
			return err
		}
		r.sockets.tcp, err = tcp.Listen(tcp.Config{
			Rank: r.cfg.Rank, Map: peers, MaxWords: messageLimit(cfg),
			Profile: func(peer int) protocol.Profile { return r.links[peer].Profile },
		})
	}
	return err
}

// tcpMap returns m as the TCP transport wants it: its peers are the ranks of
// kind Software, and it calls every one of them.
func (r *localRank) tcpMap(m *rankmap.Map) (*rankmap.Map, error) {
	entries := m.Entries()
	for i := range entries {
		entries[i].Kind = rankmap.CPU
		if i == r.cfg.Rank || r.links[i].Transport == config.TransportTCP {
			entries[i].Kind = rankmap.Software
		}
	}
	return rankmap.New(entries)
}

// on returns the transport of the given kind.
func (s *sockets) on(t config.Transport) mpe.Transport {
	if t == config.TransportTCP {
		return s.tcp
	}
	return s.udp
}

// names lists the transports.
func (s *sockets) names() []string {
	var names []string
	if s.udp != nil {
		names = append(names, string(config.TransportUDP))
	}
	if s.tcp != nil {
		names = append(names, string(config.TransportTCP))
	}
	return names
}

// close releases sockets that no engine has taken over.
func (s *sockets) close() error {
	var errs []error
	if s.udp != nil {
		errs = append(errs, s.udp.Close())
	}
	if s.tcp != nil {
		errs = append(errs, s.tcp.Close())
	}
	return errors.Join(errs...)
}

// warnBuffers says once if the kernel has granted less receive buffer than was
// asked for: it grants every rank the same.
func warnBuffers(log *zap.Logger, ranks []*localRank) {
	for _, r := range ranks {
		if r.sockets.udp == nil {
			continue
		}
		if asked, granted := r.sockets.udp.ReceiveBuffer(); granted < asked {
			log.Warn(fmt.Sprintf("the kernel grants a receive buffer of %v where %v were asked for: bursts of large messages may be lost; "+
				"raise it with \"sysctl -w net.core.rmem_max=%d\", or set limits.receive_buffer lower",
				config.Size(granted), config.Size(asked), asked), zap.Int("rank", r.cfg.Rank))
			return
		}
	}
}
