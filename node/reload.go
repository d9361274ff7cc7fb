package node

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/tcp"
)

// ErrRestart matches errors of Prepare that concern properties that cannot change while a rank runs.
var ErrRestart = errors.New("only a restart can change that")

// LinkError reports a property of a link that cannot change while the link is in use.
type LinkError struct {
	// Rank is the local rank of the link, and Peer is the rank at the other end.
	Rank, Peer int
	// Property names the property. From and To are its current and its new value.
	Property, From, To string
}

// Error returns the ranks, the property and its values.
func (e *LinkError) Error() string {
	return fmt.Sprintf("ranks %d and %d: %s: %s -> %s", e.Rank, e.Peer, e.Property, e.From, e.To)
}

// Is reports whether target is ErrRestart.
func (e *LinkError) Is(target error) bool { return target == ErrRestart }

// Prepare checks whether a running rank can switch to another valid configuration, and returns a function that applies
// it and cannot fail. It uses the links, the addresses of the other ranks and the TLS files of cfg. cfg must have the
// same ranks as the configuration that the rank was planned from, with this rank unchanged. The error joins a
// *LinkError for each property of a link that cannot change, or is a *config.Error or an error of a transport. On
// error, nothing changes.
func (r *Rank) Prepare(cfg *config.Config, m *rankmap.Map) (apply func(), err error) {
	links, err := newLinks(cfg, cfg.Rank(r.Self.Rank))
	if err != nil {
		return nil, err
	}
	var errs []error
	for peer := range links {
		errs = append(errs, r.immutableChanges(peer, &links[peer], m)...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var moves []func()
	prepared := func(move func(), err error) {
		moves, errs = append(moves, move), append(errs, err)
	}
	if r.sockets.udp != nil {
		prepared(r.sockets.udp.Prepare(m))
	}
	if r.sockets.tcp != nil {
		peers, err := r.connectionMap(m, config.TransportTCP)
		var credentials *tcp.TLS
		if err == nil {
			credentials, err = loadTLS(cfg)
		}
		if err != nil {
			return nil, err
		}
		prepared(r.sockets.tcp.Prepare(peers, credentials))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return func() {
		r.links.Store(&links)
		r.Engine.Reconfigure(r.peers(cfg, links))
		for _, move := range moves {
			move()
		}
	}, nil
}

// immutableChanges returns an error for each property of the link to a peer that differs but cannot change while the
// link is in use, because both sides must agree on it or memory was allocated for it.
func (r *Rank) immutableChanges(peer int, l *Link, m *rankmap.Map) (errs []error) {
	old := &r.Links()[peer]
	differs := func(what string, from, to any) {
		if from != to {
			errs = append(errs, &LinkError{r.Self.Rank, peer, what, fmt.Sprint(from), fmt.Sprint(to)})
		}
	}
	differs("profile", old.Profile, l.Profile)
	differs("transport", old.Transport, l.Transport)
	differs("path", old.Path, l.Path)
	differs("max_datagram", old.MaxDatagram, l.MaxDatagram)
	if l.Profile != protocol.Extended || peer == r.Self.Rank {
		return errs
	}
	differs("eager_credit", old.EagerCredit, l.EagerCredit)
	differs("both on one host", old.sameHost, l.sameHost)
	if old.Transport == config.TransportSHM {
		differs("address, which names the memory that they share", r.Config.Rank(peer).Address.AddrPort, m.Addr(peer))
	}
	return errs
}
