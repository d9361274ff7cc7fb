//go:build !linux

package attach

import "net"

func credentialsOf(*net.UnixConn) (Credentials, error) { return Credentials{}, ErrNoCredentials }
