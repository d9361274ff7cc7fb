package daemon

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// waiting starts a daemon whose rank 0 sends to rank 2, which does not receive. It returns when the wait has
// been logged, after minWarnAfter. text returns the same configuration with a different warn_after.
func waiting(t *testing.T, warnAfter string) (r *running, text func(warnAfter string) string) {
	t.Helper()
	c := newCluster(t)
	text = func(warnAfter string) string {
		return c.yaml("defaults: {warn_after: "+warnAfter+"}", "run: host", "run: standin", "run: host")
	}
	r = start(t, text(warnAfter))
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.client.Send(ctx, control.SendRequest{From: 0, To: 2}, strings.NewReader("abcd"))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	r.log.waitFor(t, " for CLEAR_TO_SEND from rank 2")
	return r, text
}

func TestWarnAfter(t *testing.T) {
	r, _ := waiting(t, "50ms")
	if _, _, err := r.client.Recv(within(t), control.RecvRequest{From: 0, To: 2, Words: 1}); err != nil {
		t.Error(err)
	}
	r.log.waitFor(t, `wait ended	{"rank": 0, "peer": 2, "waits_for": "CLEAR_TO_SEND", "elapsed": `)
	if n := strings.Count(r.log.String(), "message waits"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, r.log)
	}
}

// TestWarnAfterRaised checks that a wait that has been logged continues when a reload raises warn_after or sets
// it to 0.
func TestWarnAfterRaised(t *testing.T) {
	for _, later := range []string{"10m", "0s"} {
		r, text := waiting(t, "1ms")
		w := &waitWatcher{log: zap.NewNop(), ranks: r.ranks, now: time.Now, logged: map[waitKey]loggedWait{}}
		w.scan()
		if len(w.logged) != 1 {
			t.Fatalf("%d waits are known", len(w.logged))
		}
		r.mustReload(t, text(later))
		if w.scan(); len(w.logged) != 1 {
			t.Errorf("warn_after %s: a \"wait ended\" message is logged", later)
		}
	}
}
