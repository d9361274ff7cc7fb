package daemon

import (
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// openPath implements node.Rank.OpenPath. With PathAuto, the packet filter of the host is not bypassed.
func openPath(path config.Path) udp.OpenPath {
	if path == config.PathXDP {
		return xdp.Open
	}
	return xdp.OpenUnlessFiltered
}
