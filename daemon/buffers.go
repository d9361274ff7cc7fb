package daemon

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
)

// warnBuffers says once if the kernel has granted less receive buffer than was
// asked for: it grants every rank the same.
func warnBuffers(log *zap.Logger, ranks []*localRank) {
	for _, r := range ranks {
		if asked, granted := r.ReceiveBuffer(); granted < asked {
			log.Warn(fmt.Sprintf("the kernel grants a receive buffer of %v where %v were asked for: bursts of large messages may be lost; "+
				"raise it with \"sysctl -w net.core.rmem_max=%d\", or set limits.receive_buffer lower",
				config.Size(granted), config.Size(asked), asked), zap.Int("rank", r.cfg.Rank))
			return
		}
	}
}
