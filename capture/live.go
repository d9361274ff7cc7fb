package capture

import (
	"context"
)

// OpenLive records from a network interface with the default Options; see
// Options.OpenLive.
func OpenLive(ctx context.Context, iface string) (Source, error) {
	return Options{}.OpenLive(ctx, iface)
}

// OpenLive records from a network interface, which needs the capability
// CAP_NET_RAW; without it the error is fs.ErrPermission and says so. Where there
// are no packet sockets, which only Linux has, the error is errors.ErrUnsupported.
//
// The recording goes on until ctx ends, which is its regular end: Next then
// returns io.EOF. Close ends it too, and may be called while Next waits.
//
// Where the kernel joins datagrams or segments for speed, as it does on a
// loopback interface, a unit holds several of them.
func (o Options) OpenLive(ctx context.Context, iface string) (Source, error) {
	return o.openLive(ctx, iface)
}
