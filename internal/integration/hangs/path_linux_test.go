package hangs_test

import (
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestPath exchanges messages of many lengths between daemons with AF_XDP, through a router. The state of the rank
// shows that they did not use the kernel's socket, except long ones.
func TestPath(t *testing.T) {
	const ranks = "ranks: [{rank: 0, address: 10.9.0.1%s}, {rank: 1, address: 10.9.1.2%s}]"
	for _, test := range []struct {
		name, defaults, peerDefaults string
	}{
		{"cloudfpga", "profile: cloudfpga, path: xdp", "profile: cloudfpga, path: xdp"},
		{"cloudfpga, the peer by sockets", "profile: cloudfpga, path: auto", "profile: cloudfpga"},
		{"extended", "profile: extended, path: xdp", "profile: extended, path: xdp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHosts(t)
			const remote = ", peer: software"
			host := startDaemon(t, h.host[0], test.defaults, fmt.Sprintf(ranks, ", run: host", remote))
			const standin = remote + ", run: standin, kernel: echo"
			startDaemon(t, h.host[1], test.peerDefaults, fmt.Sprintf(ranks, remote, standin))
			trips := 0
			ping := func(words, count int) {
				err := host.Ping(t.Context(), control.PingRequest{From: 0, To: 1, Words: words, Count: count,
					Datatype: "int", Timeout: "10s"}, func(trip control.Trip) error {
					if trip.Error != "" || !trip.Verified {
						return fmt.Errorf("%d words: %s", words, trip.Error)
					}
					trips++
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			ping(1, 1) // makes the kernels resolve the next hops
			before := pathOf(t, host)
			for _, words := range []int{1, 2, 3, 345, 346, 347, 348, 700, 1000, 1056, 4346} {
				ping(words, 20)
			}
			now := pathOf(t, host)
			if now.Sent-before.Sent < uint64(trips) || now.Received-before.Received < uint64(trips) || now.Corrupt > 0 ||
				now.Full > 0 || len(now.ByKernel) > 0 {
				t.Errorf("%d round trips: %+v, before %+v", trips, now, before)
			}
			ping(262160, 3)
			if now = pathOf(t, host); now.Long == 0 || now.Full > 0 {
				t.Errorf("after long messages: %+v", now)
			}
		})
	}
}

// pathOf returns the path of a daemon's only local rank.
func pathOf(t *testing.T, daemon *control.Client) state.Path {
	t.Helper()
	s, err := daemon.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Ranks[0].Path; p != nil && p.Error == "" {
		return *p
	}
	t.Fatalf("the rank has no path: %+v", s.Ranks[0].Path)
	return state.Path{}
}
