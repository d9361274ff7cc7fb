//go:build !linux

package attach

import "net"

// On this system no program may attach: a daemon is not told who it is.

// CredentialsOf returns ErrNoCredentials.
func CredentialsOf(*net.UnixConn) (Credentials, error) { return Credentials{}, ErrNoCredentials }

type offer struct{}

func newOffer(int) (*offer, error) { return nil, ErrNoCredentials }

func (*offer) stream(*net.UnixConn, []byte) (rings, error) { return nil, ErrNoCredentials }

// greeting is a connection to a daemon that has not answered.
type greeting struct{ *net.UnixConn }

func newGreeting(conn *net.UnixConn) *greeting { return &greeting{conn} }

func (*greeting) stream(_, _ uint64) (polled, error) { return nil, ErrNoCredentials }
