//go:build !linux

package attach

import "net"

// CredentialsOf returns ErrNoCredentials.
func CredentialsOf(*net.UnixConn) (Credentials, error) { return Credentials{}, ErrNoCredentials }
