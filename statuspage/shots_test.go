package statuspage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/zrlmpi/zrlmpid/control"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/statuspage"
)

func TestShots(t *testing.T) {
	ctx := browser(t)
	dir := "/tmp/pageshots"
	os.MkdirAll(dir, 0o755)
	start := time.Now()
	src := func(f func(s *control.Status)) func() control.Status {
		return func() control.Status {
			s := cluster(30, 4000+time.Since(start).Seconds(), true)
			f(&s)
			return s
		}
	}
	recent := func() []statuspage.Entry {
		return []statuspage.Entry{{Time: start, Level: "warn", Text: "rank 0 waits for CLEAR_TO_SEND from rank 12 since 5s", Count: 1}, {Time: start.Add(-time.Minute), Level: "error", Text: "rank 0 and rank 4: a message was delivered twice", Count: 3}}
	}
	hangs := func(s *control.Status) {
		up := time.Since(start).Seconds()
		r1 := control.LocalRank{Rank: 1, Role: control.RoleHost, Address: "10.12.0.2:2718", Transports: []string{"udp", "shm"}, Engine: mpe.Snapshot{Posted: 1}, Attached: []control.Program{{PID: 812, Operations: 2}}}
		r1.Engine.Peers = append(r1.Engine.Peers, mpe.PeerSnapshot{Rank: 0, Kind: "software", Profile: "extended", Transport: "shm", Address: "10.12.0.1:2718",
			Extended: &mpe.ExtendedSnapshot{RoundTrip: 12e-6 * (1 + 0.3*float64(int(up)%5))}, Sent: uint64(up * 9000), Received: 12, BytesIn: uint64(up * 1e6),
			Receiving: &mpe.WaitSnapshot{State: "x", WaitsFor: "SEND_REQUEST", Seconds: 130 + up, Text: "rank 1 waits for a message from rank 0 with tag 4 since 2m10s"}})
		s.Ranks = append(s.Ranks, r1)
		waits(s, 1, 133+up)
		waits(s, 12, 4+up/10)
		p := s.Ranks[0].Engine.Peers
		p[6].Refuses = "it has not answered 20 repeats of SEND_REQUEST, and may be wedged"
		p[8].NetworkError = "udp: sending to 10.12.0.9:2718: connection refused"
		p[3].Dropped = map[string]uint64{"stale": uint64(up * 3), "duplicate": 4}
		p[3].Events = map[string]uint64{"repeated": uint64(up * 12)}
		for i := 20; i < 30; i++ {
			p[i].Sent, p[i].Received, p[i].PacketsIn, p[i].PacketsOut = 0, 0, 0, nil
		}
		p[3].Extended = nil
		s.Ranks = append(s.Ranks, control.LocalRank{Rank: 2, Role: control.RoleStandin, Kernel: "exec ./jacobi", KernelState: control.KernelFailed, KernelError: "exit status 3", Address: "10.12.0.3:2718", Transports: []string{"udp"}, ReceiveBuffer: 1 << 18, ReceiveBufferAsked: 1 << 22})
	}
	well := func(s *control.Status) {}
	for name, f := range map[string]func(s *control.Status){"hang": hangs, "well": well} {
		o := statuspage.Options{Host: "zc2-node07", Recent: recent}
		if name == "hang" {
			o.Latency = func(rank, peer int) (statuspage.Latency, bool) {
				return statuspage.Latency{P50: 120e-6, P99: 3.2e-3}, peer%3 == 0
			}
		}
		server := serve(t, statuspage.New(src(f), o))
		for _, s := range []screen{{width: 1280, height: 1300}, {width: 375, height: 1700}, {width: 375, height: 1700, dark: true}, {width: 800, height: 1200}} {
			p := open(t, ctx, server, "/", s)
			p.until(`document.body.dataset.state === 'live' && document.querySelectorAll('.trace').length >= 0`)
			eval[bool](p, `new Promise((done) => setTimeout(() => done(true), 3000))`)
			png := run(p, chromedp.CaptureScreenshot())
			theme := "light"
			if s.dark {
				theme = "dark"
			}
			if w := eval[int64](p, `document.documentElement.scrollWidth`); w > s.width {
				t.Errorf("%d wide at %d", w, s.width)
			}
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, s.width, theme)), png, 0o644)
			p.quiet()
		}
	}
}
