package hangs_test

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/diagnosis"
)

var (
	lostAck = want{diagnosis.LostAck, 1, 0, "Send", "zrlctl reset 1 --from 0",
		"the likeliest is that ACK from rank 1 to rank 0 was lost"}
	neverHeard = want{diagnosis.NeverHeard, 1, 0, "Send", "runs its role and has this rank map",
		"no packet was ever received from rank 1"}
)

// TestNeverStarted checks that all ranks name a rank that was not started, and that there is no finding once that rank
// has started.
func TestNeverStarted(t *testing.T) {
	for name, defaults := range map[string]string{"udp": extendedUDP, "tcp": extendedTCP} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			text := c.text(defaults, "1, run: host", "2, run: host", "3, run: host", "4, run: host")
			for rank := range 3 {
				c.start(here{}, text, rank)
			}
			for rank := range 3 {
				c.run(rank, allreduces(1))
			}
			c.explained(want{diagnosis.NeverHeard, 3, anyPeer, "Allreduce", "start rank 3",
				"no packet was ever received from rank 3"})
			c.start(here{}, text, 3) // late
			c.run(3, allreduces(1))
			c.until("no rank waits",
				func(d *diagnosis.Diagnosis) bool { return len(d.Waiting) == 0 && len(d.Findings) == 0 })
		})
	}
}

// TestConfigurations diagnoses contradictory configurations of two ranks.
func TestConfigurations(t *testing.T) {
	const clear = ", deadlines: {clear: 1m, data: 1m, ack: 1m}"
	for _, tt := range []struct {
		name   string
		own    func(c *cluster) string // of rank 0
		others func(c *cluster) string
		sends  program
		want   want
		// alone is the expected finding if only rank 0 is asked.
		alone want
	}{
		{"swapped addresses", func(c *cluster) string {
			return c.text(cloudFPGA, "1, run: host", "3, run: host",
				"2, run: host")
		},
			func(c *cluster) string { return c.text(cloudFPGA, "1, run: host", "2, run: host", "3, run: host") },
			sends(1, 0, 4),
			want{diagnosis.WrongAddress, 1, 0, "Send", "set the address of rank 1 to", "CLEAR_TO_SEND is missing"},
			want{diagnosis.NeverHeard, 1, 0, "Send", "compare its address with the rank map",
				"the likeliest is that rank 1 has not been started"}},
		{"swapped addresses, extended",
			func(c *cluster) string { return c.text(extendedUDP, "1, run: host", "3, run: host", "2, run: host") },
			func(c *cluster) string { return c.text(extendedUDP, "1, run: host", "2, run: host", "3, run: host") },
			sends(1, 0, long),
			want{diagnosis.WrongAddress, 1, 0, "Send", "set the address of rank 1 to", "rank 1 is at"},
			want{diagnosis.NeverHeard, 1, 0, "Send", "compare its address with the rank map",
				"the likeliest is that rank 1 has not been started"}},
		{"wrong profile", func(c *cluster) string {
			return c.text("profile: cloudfpga"+clear, "1, run: host", "2, run: host", "3, run: host")
		},
			func(c *cluster) string { return c.text(extendedUDP, "1, run: host", "2, run: host", "3, run: host") },
			sends(1, 0, 4),
			want{diagnosis.WrongProfile, 1, 0, "Send", "set the same profile",
				"rank 0 speaks profile cloudfpga to rank 1, which speaks profile extended to it"},
			want{diagnosis.NeverHeard, 1, 0, "Send", "compare its address with the rank map",
				"the likeliest is that rank 1 has not been started"}},
		{"wrong profile, extended",
			func(c *cluster) string { return c.text(extendedUDP, "1, run: host", "2, run: host", "3, run: host") },
			func(c *cluster) string {
				return c.text("profile: v0.9"+clear, "1, run: host", "2, run: host", "3, run: host")
			}, sends(1, 0, long),
			want{diagnosis.WrongProfile, 1, 0, "Send", "set the same profile",
				"rank 0 speaks profile extended to rank 1, which speaks profile v0.9 to it"},
			want{diagnosis.NeverHeard, 1, 0, "Send", "compare its address with the rank map",
				"the likeliest is that rank 1 has not been started"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			own, others := tt.own(c), tt.others(c)
			c.start(here{}, own, 0)
			c.start(here{}, others, 1)
			c.start(here{}, others, 2)
			c.run(0, tt.sends)
			c.explained(tt.want)
			if d := c.explained(tt.alone, 0); len(d.Unknown) == 0 {
				t.Errorf("no rank is named as not asked: %+v", d)
			}
		})
	}
}
