//go:build !linux

package wire

import "net"

// On this system no program may attach: a daemon cannot learn who it is.

// CredentialsOf returns ErrNoCredentials.
func CredentialsOf(*net.UnixConn) (Credentials, error) { return Credentials{}, ErrNoCredentials }

// Link is a program's connection: there is none.
type Link struct{ Polled }

// NewLink returns ErrNoCredentials.
func NewLink(*net.UnixConn) (*Link, error) { return nil, ErrNoCredentials }

// Offer is memory that goes to a program: there is none.
type Offer struct{}

// NewOffer returns ErrNoCredentials.
func NewOffer(int) (*Offer, error) { return nil, ErrNoCredentials }

// Stream returns ErrNoCredentials.
func (*Offer) Stream(*net.UnixConn, []byte) (Rings, error) { return nil, ErrNoCredentials }

// Greeting is a connection to a daemon that has not answered.
type Greeting struct{ *net.UnixConn }

// NewGreeting returns the Greeting of a connection.
func NewGreeting(conn *net.UnixConn) *Greeting { return &Greeting{conn} }

// Stream returns ErrNoCredentials.
func (*Greeting) Stream(_, _ uint64) (Polled, error) { return nil, ErrNoCredentials }
