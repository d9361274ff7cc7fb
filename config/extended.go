package config

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TLS holds the paths of the PEM files that secure the links over TCP. Load resolves paths relative to the
// configuration's folder.
type TLS struct {
	// Certificate is the certificate that all ranks of this daemon share. It must contain the IP address of each of
	// them. Intermediate certificates follow it in the file.
	Certificate string `yaml:"certificate"`
	// Key is the private key of the certificate.
	Key string `yaml:"key"`
	// Authority holds the certificates of the authorities that have signed the certificates of the ranks.
	Authority string `yaml:"authority"`
}

// Attach configures the Unix socket through which programs attach to the daemon's ranks. Its file has the permissions
// of the control socket.
type Attach struct {
	// Socket is an absolute path, or empty for no socket. If it is nil, the default applies (see Config.AttachSocket).
	Socket *string `yaml:"socket,omitempty"`
}

// AttachSocket returns the path of the socket through which programs attach, or "" without such a socket.
// AttachSocketFor derives the default from the control socket.
func (c *Config) AttachSocket() string {
	if c.Attach.Socket != nil {
		return *c.Attach.Socket
	}
	return AttachSocketFor(c.ControlSocket())
}

// AttachSocketFor returns the default path of the attach socket for a control socket:
// /run/zrlmpid/control-attach.sock for /run/zrlmpid/control.sock. Without a control socket it returns "".
func AttachSocketFor(control string) string {
	if control == "" {
		return ""
	}
	return strings.TrimSuffix(control, socketSuffix) + "-attach" + socketSuffix
}

// socketSuffix is the suffix of the names of sockets.
const socketSuffix = ".sock"

// ProfileBetween returns the profile of the packets between two ranks, which both sides determine identically: the
// profile in the entry of either rank, or else in the configuration's defaults, or else builtIn. An extended profile of
// a software rank does not apply to its links with other kinds of peers, which do not support it. If the entries set
// different profiles, the error is an *Error.
func (c *Config) ProfileBetween(rank, b *Rank, builtIn protocol.Profile) (protocol.Profile, error) {
	deployed := rank.Peer != PeerSoftware || b.Peer != PeerSoftware
	says := func(r *Rank) *Profile {
		said := r.linkProfile()
		if deployed && said != nil && protocol.Profile(*said) == protocol.Extended {
			return nil
		}
		return said
	}
	one, other := says(rank), says(b)
	switch {
	case one != nil && other != nil && *one != *other:
		return 0, &Error{Key: "link.profile", Problem: fmt.Sprintf(
			"ranks %d and %d have different values for the link between them: set it for one of them, or to the same "+
				"value for both",
			rank.Rank, b.Rank)}
	case one != nil:
		return protocol.Profile(*one), nil
	case other != nil:
		return protocol.Profile(*other), nil
	case c.Defaults.Profile != nil && (!deployed || protocol.Profile(*c.Defaults.Profile) != protocol.Extended):
		return protocol.Profile(*c.Defaults.Profile), nil
	}
	return builtIn, nil
}

// linkProfile returns the profile set in the rank's entry, or nil if the entry sets none.
func (r *Rank) linkProfile() *Profile {
	if r.Link == nil {
		return nil
	}
	return r.Link.Profile
}
