package config

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TLS are the PEM files with which the links over TCP are secured. Load makes paths
// relative to the configuration's folder into ones relative to the working
// directory.
type TLS struct {
	// Certificate is that of all ranks of this daemon, and bears the IP address
	// of each; those between it and the authority's follow it.
	Certificate string `yaml:"certificate"`
	// Key is the private key of the certificate.
	Key string `yaml:"key"`
	// Authority are the certificates that sign those of all ranks.
	Authority string `yaml:"authority"`
}

// Attach is the Unix socket by which programs attach to the daemon's ranks. Its
// file has the permissions of the control socket.
type Attach struct {
	// Socket is an absolute path, or empty for no socket. Nil is the default:
	// see Config.AttachSocket.
	Socket *string `yaml:"socket,omitempty"`
}

// AttachSocket returns the path of the socket by which programs attach, or "" if
// there is none. Where the configuration does not say, it is AttachSocketBeside the
// control socket.
func (c *Config) AttachSocket() string {
	if c.Attach.Socket != nil {
		return *c.Attach.Socket
	}
	return AttachSocketBeside(c.Control.Socket)
}

// AttachSocketBeside returns the path of the socket by which programs attach to a
// daemon whose configuration has none, but this control socket: /run/zrlmpid/
// control-attach.sock beside /run/zrlmpid/control.sock. Without a control socket
// there is none.
func AttachSocketBeside(control string) string {
	if control == "" {
		return ""
	}
	return strings.TrimSuffix(control, socketSuffix) + "-attach" + socketSuffix
}

// socketSuffix ends the names of sockets.
const socketSuffix = ".sock"

// ProfileBetween returns the profile of the packets that two ranks exchange, which
// is the same from both sides: what the entry of either says, else what the
// configuration's defaults say, else builtIn. What a software rank says of the
// extended profile does not hold for its links with other kinds of peers, which do
// not have it. The error is an *Error: the ranks' entries have different profiles.
func (c *Config) ProfileBetween(a, b *Rank, builtIn protocol.Profile) (protocol.Profile, error) {
	deployed := a.Peer != PeerSoftware || b.Peer != PeerSoftware
	says := func(r *Rank) *Profile {
		said := r.says()
		if deployed && said != nil && protocol.Profile(*said) == protocol.Extended {
			return nil
		}
		return said
	}
	one, other := says(a), says(b)
	switch {
	case one != nil && other != nil && *one != *other:
		return 0, &Error{Key: "link.profile", Problem: fmt.Sprintf(
			"ranks %d and %d have different values for the link between them: set it for one of them, or to the same value for both",
			a.Rank, b.Rank)}
	case one != nil:
		return protocol.Profile(*one), nil
	case other != nil:
		return protocol.Profile(*other), nil
	case c.Defaults.Profile != nil && (!deployed || protocol.Profile(*c.Defaults.Profile) != protocol.Extended):
		return protocol.Profile(*c.Defaults.Profile), nil
	}
	return builtIn, nil
}

// says returns the profile in the rank's own entry, or nil.
func (r *Rank) says() *Profile {
	if r.Link == nil {
		return nil
	}
	return r.Link.Profile
}
