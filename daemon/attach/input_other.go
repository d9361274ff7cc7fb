//go:build !linux

package attach

import (
	"net"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

func newSocket(*net.UnixConn, bool) (wire.Stream, error) { return nil, wire.ErrNoCredentials }
