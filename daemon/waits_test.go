package daemon

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// TestWarnAfterRaised: a wait that was logged goes on when a reload has waits logged later,
// or not at all.
func TestWarnAfterRaised(t *testing.T) {
	for _, later := range []string{"10m", "0s"} {
		c := newCluster(t)
		ranks := []string{"run: host", "run: standin", "run: host"}
		r := start(t, c.yaml("defaults: {warn_after: 1ms}", ranks...))
		ctx, cancel := context.WithCancel(within(t))
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.client.Send(ctx, control.SendRequest{From: 0, To: 2}, strings.NewReader("abcd"))
		}()
		r.log.waitFor(t, " for CLEAR_TO_SEND from rank 2")
		w := &waitWatcher{log: zap.NewNop(), ranks: r.ranks, now: time.Now, warned: map[waitKey]warnedWait{}}
		w.scan()
		if len(w.warned) != 1 {
			t.Fatalf("%d waits are known", len(w.warned))
		}
		r.mustReload(t, c.yaml("defaults: {warn_after: "+later+"}", ranks...))
		if w.scan(); len(w.warned) != 1 {
			t.Errorf("warn_after %s: the wait is said to have ended", later)
		}
		cancel()
		<-done
	}
}
