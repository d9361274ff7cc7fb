package bench

import (
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestHosts measures a little on all sides between two hosts. It checks that there are figures, and that all sides with
// a path used it.
func TestHosts(t *testing.T) {
	needs.Root(t, "messages between two hosts", "can create network namespaces")
	needs.Program(t, "messages between two hosts", "ip", "iproute2")
	needs.Program(t, "messages between two hosts", vethMPI.launcher, vethMPI.packages)
	keys := keysOf(hostsFamily())
	r, progress := quick(t, Options{Workloads: []string{"pingpong"}, Only: keys})
	for _, key := range keys {
		s := r.result("pingpong").side(key)
		if s == nil {
			t.Errorf("%s was not measured", key)
			continue
		}
		w := workloads[0]
		steps := w.quickSteps
		if s.Kind == Limit {
			steps = steps[:2]
		}
		if s.Verified != w.total(steps) || s.Memory == 0 || len(s.Cut) > 0 {
			t.Errorf("%+v", s)
		}
		for _, p := range s.Median {
			if p.P50 <= 0 || p.CPU <= 0 {
				t.Errorf("%s: %+v", key, p)
			}
		}
	}
	for _, missing := range r.Missing {
		if !strings.Contains(missing, "the transport chose the kernel's socket") { // as it does for long messages
			t.Errorf("%s\n%s", missing, progress)
		}
	}
}

// TestPathCounts checks that datagrams outside the path are an error, unless the transport chose the socket for long
// messages.
func TestPathCounts(t *testing.T) {
	refused := []state.PathRefusal{{Peer: 1, Reason: "no route"}}
	for _, x := range []struct {
		n            int
		path         state.Path
		engine       directions
		note, failed string
	}{
		{4, state.Path{Sent: 99, Received: 100}, directions{100, 100}, "", ""},
		{4, state.Path{Sent: 101, Received: 100}, directions{100, 100}, "", ""}, // one more has been staged
		{4, state.Path{Sent: 98, Received: 100}, directions{100, 100}, "", "4 B: of the datagrams, 98.0 % of 100 sent and"},
		{1384, state.Path{Sent: 100, Received: 98}, directions{100, 100}, "", "98.0 % of 100 received used AF_XDP"},
		{4, state.Path{}, directions{}, "", "0.0 % of 0 sent"},
		{1388, state.Path{Sent: 50, Received: 60, Long: 50}, directions{100, 100},
			"1388 B: of the datagrams, 50.0 % of 100 sent and 60.0 % of 100 received used AF_XDP: the transport chose the kernel's socket", ""},
		{1388, state.Path{Sent: 50, Received: 60}, directions{100, 100}, "", "50.0 % of 100 sent"},
		{1388, state.Path{Sent: 50, Received: 60, Long: 50, Full: 1}, directions{100, 100}, "", "1 found its ring full"},
		{1388, state.Path{Sent: 50, Received: 60, Long: 50, ByKernel: refused}, directions{100, 100}, "", "no route"},
	} {
		before := pathCounts{path: state.Path{Sent: 7, Received: 8, Full: 9}, engine: directions{5, 6}}
		now := pathCounts{path: x.path, engine: directions{5 + x.engine.sent, 6 + x.engine.received}}
		now.path.Sent, now.path.Received, now.path.Full = 7+x.path.Sent, 8+x.path.Received, 9+x.path.Full
		note, err := now.since(&before).check(step{x.n, 1})
		if !strings.HasPrefix(note, x.note) || (note == "") != (x.note == "") || (err == nil) != (x.failed == "") ||
			err != nil && !strings.Contains(err.Error(), x.failed) {
			t.Errorf("%+v: %q, %v", x, note, err)
		}
	}
}
