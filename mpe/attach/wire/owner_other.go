//go:build !linux && !darwin && !freebsd

package wire

import "net"

// OwnerOf always returns ErrNoCredentials.
func OwnerOf(*net.UnixConn) (int, error) { return 0, ErrNoCredentials }
