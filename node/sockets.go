package node

import (
	"errors"

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

// Bind binds the rank to its address. The error is that of the transport, which
// names rank and address and says what to do.
func (r *Rank) Bind(m *rankmap.Map) (err error) {
	cfg := r.Config
	if r.uses(config.TransportUDP) {
		r.sockets.udp, err = udp.Listen(udp.Config{
			Rank: r.Self.Rank, Map: m, ReceiveBuffer: int(cfg.Limits.ReceiveBuffer),
			Pace: func(peer int) udp.Pacing {
				p := r.Links[peer].Pace
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
		var credentials *tcp.TLS
		if t := cfg.TLS; t != nil {
			if credentials, err = tcp.LoadTLS(t.Certificate, t.Key, t.Authority); err != nil {
				return err
			}
		}
		r.sockets.tcp, err = tcp.Listen(tcp.Config{
			Rank: r.Self.Rank, Map: peers, MaxWords: MessageLimit(cfg), TLS: credentials,
			Profile: func(peer int) protocol.Profile { return r.Links[peer].Profile },
		})
	}
	return err
}

// tcpMap returns m as the TCP transport wants it: its peers are the ranks of
// kind Software, and it calls every one of them.
func (r *Rank) tcpMap(m *rankmap.Map) (*rankmap.Map, error) {
	entries := m.Entries()
	for i := range entries {
		entries[i].Kind = rankmap.CPU
		if i == r.Self.Rank || r.Links[i].Transport == config.TransportTCP {
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
