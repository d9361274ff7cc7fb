package progress

import (
	"context"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// Heartbeat reports whether the poller, which polls the sources when something
// arrives, is alive: it has until ctx is done to show it.
func (g *Group) Heartbeat(ctx context.Context) error {
	if len(g.drivers) == 0 {
		return nil
	}
	return poller.Heartbeat(ctx)
}
