package progress

import (
	"context"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// Pulse reports whether the poller, which has the sources looked at when something
// arrives, is alive: it has until ctx is done to show it.
func (g *Group) Pulse(ctx context.Context) error {
	if len(g.drivers) == 0 {
		return nil
	}
	return poller.Pulse(ctx)
}
