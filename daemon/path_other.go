//go:build !linux

package daemon

import (
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/udp"
)

// openPath is nil because only Linux has AF_XDP.
var openPath func(config.Path) udp.OpenPath
