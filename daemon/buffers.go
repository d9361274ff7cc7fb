package daemon

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
)

// warnBuffers logs once if the kernel has granted less receive buffer than requested. It
// grants every rank the same.
func warnBuffers(log *zap.Logger, ranks []*localRank) {
	for _, r := range ranks {
		if requested, granted := r.ReceiveBuffer(); granted < requested {
			log.Warn("receive buffer smaller than requested, bursts of large messages may be lost",
				zap.Int("rank", r.cfg.Rank), zap.Stringer("granted", config.Size(granted)), zap.Stringer("requested", config.Size(requested)),
				zap.String("action", fmt.Sprintf("sysctl -w net.core.rmem_max=%d, or lower limits.receive_buffer", requested)))
			return
		}
	}
}
