//go:build !linux

package bindfault

import "net/netip"

// Bound knows no portable way to ask.
func Bound(string, netip.AddrPort) *Socket { return nil }
