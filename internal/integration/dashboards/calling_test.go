package dashboards_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// startCalling starts a daemon with two programs that keep making collective calls.
func startCalling(t *testing.T) *running {
	n := newNetwork(t)
	d := startDaemon(t, daemon.Options{}, "defaults: {profile: extended}",
		fmt.Sprintf("address: %q, run: host", n.address(0)), fmt.Sprintf("address: %q, run: host", n.address(1)))
	var worlds []*mpi.Comm
	for rank := range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		c, err := attach.Dial(ctx, config.AttachSocketFor(d.socket), rank)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) }) // a call may have been cut off
		world, err := mpi.New(c)
		if err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, world)
	}
	keep(t, func(ctx context.Context) {
		var both sync.WaitGroup
		for _, w := range worlds {
			both.Go(func() { _ = mpi.Bcast(ctx, w, make([]int32, 100), 0) })
		}
		both.Wait()
	})
	return d
}
