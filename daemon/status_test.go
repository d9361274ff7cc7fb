package daemon

import (
	"runtime"
	"testing"

	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/udp"
)

// How the local ranks are connected comes through the control socket.
func TestStatusOfConnections(t *testing.T) {
	t.Setenv(udp.EnvOffload, "auto")
	c := newCluster(t)
	r := start(t, c.yaml("limits: {offload: off}\n", "run: host, link: {profile: extended}", "run: host", "run: standin"))
	s, err := r.client.Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	ring := 0
	if runtime.GOOS == "linux" {
		ring = shm.DefaultRing(3)
	}
	for _, local := range s.Ranks {
		o := local.Offload
		if o == nil || !o.Disabled || o.Segmentation || o.Coalescing || o.Refused != nil {
			t.Errorf("rank %d: offload %+v", local.Rank, o)
		}
		if want := local.Rank < 2; want && local.Ring != ring || !want && local.Ring != 0 {
			t.Errorf("rank %d: rings of %d bytes", local.Rank, local.Ring)
		}
		// Three ranks, and programs that attach to two of them.
		if want := 5 > runtime.NumCPU(); local.Oversubscribed != want {
			t.Errorf("rank %d: oversubscribed is %v", local.Rank, local.Oversubscribed)
		}
	}
}
