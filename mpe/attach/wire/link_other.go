//go:build !linux

package wire

import "net"

// Programs cannot attach on this system, because it does not let a daemon determine which user runs a program.

// CredentialsOf always returns ErrNoCredentials.
func CredentialsOf(*net.UnixConn) (Credentials, error) { return Credentials{}, ErrNoCredentials }

// Link is not available on this system.
type Link struct{ Polled }

// NewLink always returns ErrNoCredentials.
func NewLink(*net.UnixConn) (*Link, error) { return nil, ErrNoCredentials }

// Offer is not available on this system.
type Offer struct{}

// NewOffer always returns ErrNoCredentials.
func NewOffer(int) (*Offer, error) { return nil, ErrNoCredentials }

// Stream always returns ErrNoCredentials.
func (*Offer) Stream(*net.UnixConn, []byte) (Rings, error) { return nil, ErrNoCredentials }

// Greeting is a connection to a daemon that has not yet sent WELCOME.
type Greeting struct{ *net.UnixConn }

// NewGreeting returns a Greeting for a connection.
func NewGreeting(conn *net.UnixConn) *Greeting { return &Greeting{conn} }

// Stream always returns ErrNoCredentials.
func (*Greeting) Stream(_, _ uint64) (Polled, error) { return nil, ErrNoCredentials }
