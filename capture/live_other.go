//go:build !linux

package capture

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// OpenLive returns an error that wraps errors.ErrUnsupported.
func (o Options) OpenLive(_ context.Context, iface string) (Source, error) {
	return nil, fmt.Errorf("record from interface %s: not possible on %s, only on Linux; record with tcpdump and "+
		"read the file: %w",
		iface, runtime.GOOS, errors.ErrUnsupported)
}
