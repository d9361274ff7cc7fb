//go:build !linux

package bindfault

import "net/netip"

// Bound returns nil: there is no portable way to find the socket.
func Bound(string, netip.AddrPort) *Socket { return nil }
