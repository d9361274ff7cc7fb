package node

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/transport/tcp"
	"github.com/zrlmpi/zrlmpid/udp"
)

// sockets holds the transports of one rank. A transport that no link uses is nil.
type sockets struct {
	udp *udp.Conn
	tcp *tcp.Conn
	shm *shm.Conn
}

// Bind binds the rank to its address. The error, from a transport, names the rank and the address and suggests a
// remedy.
func (r *Rank) Bind(m *rankmap.Map) (err error) {
	cfg, links := r.Config, r.Links() // a reload changes neither profile nor transport
	if r.usesTransport(config.TransportUDP) {
		var faults *impair.Impairer
		if s := r.Self.Faults; s != nil {
			if faults, err = impair.New(*s, impair.Datagrams, cfg.Addrs()); err != nil {
				return err
			}
		}
		udpConfig := udp.Config{
			Rank: r.Self.Rank, Map: m, Socket: r.boundSocket, ReceiveBuffer: int(cfg.Limits.ReceiveBuffer),
			NoOffload: cfg.Limits.Offload == config.OffloadOff, Impair: faults,
			Large: func(peer int) bool {
				return links[peer].Profile == protocol.Extended && links[peer].Transport == config.TransportUDP
			},
			Pace: func(peer int) udp.Pacing {
				p := r.Links()[peer].Pace
				return udp.Pacing{PerDatagram: p.PerDatagram, OverWords: uint32(p.OverWords)}
			},
		}
		if r.sockets.udp, err = r.listenUDP(&udpConfig); err != nil {
			return err
		}
	}
	if r.usesTransport(config.TransportTCP) {
		var peers *rankmap.Map
		if peers, err = r.connectionMap(m, config.TransportTCP); err != nil {
			return err
		}
		var credentials *tcp.TLS
		if credentials, err = loadTLS(cfg); err != nil {
			return err
		}
		r.sockets.tcp, err = tcp.Listen(tcp.Config{
			Rank: r.Self.Rank, Map: peers, MaxWords: MessageLimit(cfg), TLS: credentials,
			Profile: func(peer int) protocol.Profile { return links[peer].Profile },
		})
		if err != nil {
			return err
		}
	}
	if r.usesTransport(config.TransportSHM) {
		var peers *rankmap.Map
		if peers, err = r.connectionMap(m, config.TransportSHM); err != nil {
			return err
		}
		r.sockets.shm, err = shm.Listen(shm.Config{
			Rank: r.Self.Rank, Map: peers, Directory: r.Directory, Ring: ringSize(cfg), Pipelined: !r.Oversubscribed(),
		})
	}
	return err
}

// listenUDP opens the rank's UDP transport, with a path past the kernel's socket if a link is configured to use one.
func (r *Rank) listenUDP(cfg *udp.Config) (*udp.Conn, error) {
	path := r.configuredPath()
	if path == config.PathKernel {
		return udp.Listen(*cfg)
	}
	switch {
	case cfg.Impair != nil:
		r.pathError = errors.New("faults are injected into the kernel's socket only")
	case r.OpenPath == nil:
		r.pathError = errors.New("only the ranks of a zrlmpid on Linux can use AF_XDP")
	default:
		byPath, open := *cfg, r.OpenPath(path)
		byPath.UsesPath = func(peer int) bool { return r.Links()[peer].Path != config.PathKernel }
		var openErr error
		byPath.OpenPath = func(local netip.AddrPort, peers []netip.AddrPort) (opened udp.Path, err error) {
			opened, openErr = open(local, peers)
			return opened, openErr
		}
		conn, err := udp.Listen(byPath)
		if err == nil || path == config.PathXDP && openErr == nil {
			return conn, err
		}
		r.pathError = cmp.Or(openErr, err)
	}
	if path == config.PathXDP {
		return nil, fmt.Errorf("rank %d: path: xdp is not possible: %w; use path: auto or kernel", r.Self.Rank, r.pathError)
	}
	return udp.Listen(*cfg)
}

// PathError returns the reason why the rank uses only the kernel's socket although a link is configured otherwise, or
// nil. It may be called after Bind.
func (r *Rank) PathError() error { return r.pathError }

// configuredPath returns PathXDP if a link over UDP requires it, PathAuto if a link allows it, and PathKernel
// otherwise.
func (r *Rank) configuredPath() config.Path {
	path := config.PathKernel
	for _, l := range r.Links() {
		switch {
		case l.Transport != config.TransportUDP:
		case l.Path == config.PathXDP:
			return config.PathXDP
		case l.Path == config.PathAuto:
			path = config.PathAuto
		}
	}
	return path
}

// CheckTLS checks the TLS files of the rank if one of its links needs them. The rank need not be bound.
func (r *Rank) CheckTLS() error {
	if !r.usesTransport(config.TransportTCP) {
		return nil
	}
	credentials, err := loadTLS(r.Config)
	if err != nil || credentials == nil {
		return err
	}
	return credentials.Check(r.Self.Address.Addr())
}

// loadTLS loads the TLS files for TCP connections. It returns nil if TLS is not configured.
func loadTLS(cfg *config.Config) (*tcp.TLS, error) {
	t := cfg.TLS
	if t == nil {
		return nil, nil
	}
	return tcp.LoadTLS(t.Certificate, t.Key, t.Authority)
}

// connectionMap returns a copy of m for a transport with connections. In the copy, this rank and the peers to connect
// to are of kind Software, and all other ranks of kind CPU.
func (r *Rank) connectionMap(m *rankmap.Map, t config.Transport) (*rankmap.Map, error) {
	entries := m.Entries()
	for i := range entries {
		entries[i].Kind = rankmap.CPU
		if i == r.Self.Rank || r.Links()[i].Transport == t {
			entries[i].Kind = rankmap.Software
		}
	}
	return rankmap.New(entries)
}

// transport returns the given transport.
func (s *sockets) transport(t config.Transport) mpe.Transport {
	switch t {
	case config.TransportTCP:
		return s.tcp
	case config.TransportSHM:
		return s.shm
	}
	return s.udp
}

// transports lists the transports that links use.
func (s *sockets) transports() []config.Transport {
	var names []config.Transport
	if s.udp != nil {
		names = append(names, config.TransportUDP)
	}
	if s.tcp != nil {
		names = append(names, config.TransportTCP)
	}
	if s.shm != nil {
		names = append(names, config.TransportSHM)
	}
	return names
}

// close closes the sockets that no engine owns.
func (s *sockets) close() error {
	var errs []error
	if s.udp != nil {
		errs = append(errs, s.udp.Close())
	}
	if s.tcp != nil {
		errs = append(errs, s.tcp.Close())
	}
	if s.shm != nil {
		errs = append(errs, s.shm.Close())
	}
	return errors.Join(errs...)
}
