package digest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

var started = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// status is one of the given local ranks, of a cluster of ten.
func status(uptime float64, ranks ...control.LocalRank) *control.Status {
	s := &control.Status{PID: 7, Started: started, Uptime: uptime, Ranks: ranks, Cluster: make([]control.Member, 10)}
	for i := range s.Cluster {
		s.Cluster[i].Rank = i
	}
	for _, r := range ranks {
		s.Cluster[r.Rank].Role = r.Role
	}
	return s
}

func host(rank int, peers ...mpe.PeerSnapshot) control.LocalRank {
	return control.LocalRank{Rank: rank, Role: control.RoleHost, Engine: mpe.Snapshot{Rank: rank, Peers: peers}}
}

func standIn(rank int, peers ...mpe.PeerSnapshot) control.LocalRank {
	r := host(rank, peers...)
	r.Role, r.Kernel, r.KernelState = control.RoleStandin, "echo", control.KernelRunning
	return r
}

func sends(to int, seconds float64) mpe.PeerSnapshot {
	return mpe.PeerSnapshot{Rank: to, Sending: &mpe.WaitSnapshot{
		State: "WAIT4CLEAR", WaitsFor: "CLEAR_TO_SEND", Seconds: seconds, Words: 16, Retransmissions: 2, Text: "it waits for CLEAR_TO_SEND since 1.5s",
	}}
}

func receives(from int, seconds float64) mpe.PeerSnapshot {
	return mpe.PeerSnapshot{Rank: from, Receiving: &mpe.WaitSnapshot{State: handshake.WaitRequest.String(), WaitsFor: "SEND_REQUEST", Seconds: seconds, Text: "it waits"}}
}

func both(to int, seconds float64) mpe.PeerSnapshot {
	p := sends(to, seconds)
	p.Receiving = receives(to, seconds/2).Receiving
	return p
}

// TestWaits: the oldest come first, kernels that wait for work are no wait, and a
// remote rank's is told once.
func TestWaits(t *testing.T) {
	any := host(0, sends(1, 5), mpe.PeerSnapshot{Rank: 6, Deferred: &mpe.DeferredSnapshot{Call: "MPI_SEND_INT", Seconds: 9}},
		mpe.PeerSnapshot{Rank: 7, UnansweredClear: &mpe.DeferredSnapshot{Call: "RECV_INT", Seconds: 2}})
	any.Engine.AnySource = &mpe.WaitSnapshot{State: handshake.WaitRequest.String(), Seconds: 3, Text: "any"}
	idle := standIn(1, receives(0, 100), mpe.PeerSnapshot{Rank: 0, Deferred: &mpe.DeferredSnapshot{Seconds: 7}})
	idle.Engine.AnySource = &mpe.WaitSnapshot{Seconds: 100}
	d := Of(status(1, any, idle), nil)
	var got []string
	for _, w := range d.Waits {
		got = append(got, w.Text)
	}
	want := []string{
		"rank 6 is blocked in a send (MPI_SEND_INT) to rank 0, which has no matching receive posted", "it waits for CLEAR_TO_SEND", "any",
		"rank 7 is blocked in a receive (RECV_INT) from rank 0, which has no send for it",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if w := d.Waits[1]; w.Rank != 0 || w.Peer != 1 || w.Direction != Send || w.Bytes != 64 || w.Retransmissions != 2 || w.Age() != Waiting {
		t.Errorf("%+v", w)
	}
	if w := d.Waits[0]; w.Rank != 6 || w.Peer != 0 || !w.Remote {
		t.Errorf("%+v", w)
	}
	if w := d.Waits[3]; w.Rank != 7 || w.Peer != 0 || !w.Remote || w.Direction != Receive || w.For != "DATA" {
		t.Errorf("%+v", w)
	}
	if d.Waits[2].Peer != AnyRank {
		t.Errorf("%+v", d.Waits[2])
	}
	for i, want := range []float64{5, 9, 2, 0, 0} {
		if p := d.Peers[i]; p.Oldest != want {
			t.Errorf("rank %d, peer %d: %v, want %v", p.Rank, p.Peer, p.Oldest, want)
		}
	}
}

func TestCycles(t *testing.T) {
	deferred := func(from int, seconds float64) mpe.PeerSnapshot {
		p := receives(from, 20)
		p.Deferred = &mpe.DeferredSnapshot{Call: "x", Seconds: seconds}
		return p
	}
	anySource := host(0)
	anySource.Engine.AnySource = &mpe.WaitSnapshot{Seconds: 50}
	ring := make([]control.LocalRank, 10)
	for i := range ring {
		ring[i] = host(i, sends((i+1)%10, 30))
	}
	for name, tt := range map[string]struct {
		ranks []control.LocalRank
		want  []Cycle
	}{
		"nobody":         {[]control.LocalRank{host(0), host(1)}, nil},
		"one waits":      {[]control.LocalRank{host(0, receives(1, 9)), host(1)}, nil},
		"young":          {[]control.LocalRank{host(0, receives(1, 9)), host(1, receives(0, .9))}, nil},
		"two receive":    {[]control.LocalRank{host(0, receives(1, 9)), host(1, receives(0, 4))}, []Cycle{{[]int{0, 1}, 4, "ranks 0 and 1 wait for each other"}}},
		"two send":       {[]control.LocalRank{host(0, sends(1, 3)), host(1, sends(0, 4))}, []Cycle{{[]int{1, 0}, 3, "ranks 1 and 0 wait for each other"}}},
		"kernel idles":   {[]control.LocalRank{host(0, receives(1, 9)), standIn(1, receives(0, 9))}, nil},
		"kernel sends":   {[]control.LocalRank{host(0, sends(1, 9)), standIn(1, sends(0, 8))}, []Cycle{{[]int{0, 1}, 8, "ranks 0 and 1 wait for each other"}}},
		"remote":         {[]control.LocalRank{host(0, deferred(7, 6))}, []Cycle{{[]int{0, 7}, 6, "ranks 0 and 7 wait for each other"}}},
		"any source":     {[]control.LocalRank{anySource, host(1, receives(0, 4))}, nil},
		"three":          {[]control.LocalRank{host(0, receives(1, 9)), host(1, receives(2, 8)), host(2, receives(0, 7))}, []Cycle{{[]int{0, 1, 2}, 7, "rank 0 waits for rank 1 waits for rank 2 waits for rank 0"}}},
		"a tail":         {[]control.LocalRank{host(0, receives(1, 90)), host(1, receives(2, 8)), host(2, receives(1, 7))}, []Cycle{{[]int{1, 2}, 7, "ranks 1 and 2 wait for each other"}}},
		"the shortest":   {[]control.LocalRank{host(0, receives(1, 9)), host(1, receives(2, 8), receives(0, 3)), host(2, receives(0, 7))}, []Cycle{{[]int{0, 1}, 3, "ranks 0 and 1 wait for each other"}}},
		"twice the pair": {[]control.LocalRank{host(0, both(1, 8)), host(1, both(0, 6))}, []Cycle{{[]int{0, 1}, 6, "ranks 0 and 1 wait for each other"}}},
		"two cycles": {[]control.LocalRank{host(0, receives(1, 9)), host(1, receives(0, 9)), host(2, receives(3, 5)), host(3, receives(2, 5))},
			[]Cycle{{[]int{0, 1}, 9, "ranks 0 and 1 wait for each other"}, {[]int{2, 3}, 5, "ranks 2 and 3 wait for each other"}}},
		"long": {ring, []Cycle{{[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 30,
			"rank 0 waits for rank 1 waits for rank 2 waits for rank 3 waits for rank 4 waits for rank 5 waits for rank 6 waits for rank 7 waits for … waits for rank 9 waits for rank 0"}}},
	} {
		d := Of(status(1, tt.ranks...), nil)
		if len(d.Cycles)+len(tt.want) > 0 && !reflect.DeepEqual(d.Cycles, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, d.Cycles, tt.want)
		}
		marked := 0
		for _, w := range d.Waits {
			if w.InCycle {
				marked++
			}
		}
		if (marked > 0) != (len(tt.want) > 0) {
			t.Errorf("%s: %d waits are marked", name, marked)
		}
	}
}

// TestManyCycles are told up to a bound.
func TestManyCycles(t *testing.T) {
	var ranks []control.LocalRank
	for i := 0; i < 4*maxCycles; i += 2 {
		ranks = append(ranks, host(i, receives(i+1, 9)), host(i+1, receives(i, 9)))
	}
	s := &control.Status{Ranks: ranks}
	if got := len(Of(s, nil).Cycles); got != maxCycles {
		t.Errorf("%d cycles", got)
	}
}

func TestTroubles(t *testing.T) {
	r := standIn(2, mpe.PeerSnapshot{Rank: 0, NetworkError: "no route"}, mpe.PeerSnapshot{Rank: 1, Refuses: "it is wedged"})
	r.KernelState, r.KernelError = control.KernelFailed, "exit status 1"
	r.ReceiveBufferAsked, r.ReceiveBuffer = 1<<22, 1<<20
	r.Offload = &control.Offload{Batches: true, Coalescing: true, Refused: []control.OffloadRefused{{Peer: 3, Error: "EIO"}}}
	s := status(1, r)
	s.LostLogLines = 4
	d := Of(s, nil)
	var got []string
	for _, tr := range d.Troubles {
		level, err := tr.Severity.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(level)+": "+tr.Text+"; "+tr.Do)
	}
	want := []string{
		"bad: rank 2: kernel echo failed: exit status 1; ",
		"bad: rank 2 refuses to send to rank 1: it is wedged; once rank 1 is well again: zrlctl reset 1 --from 2",
		"warning: no route; ",
		"warning: rank 2 has a receive buffer of 1MiB, and asked for 4MiB; raise net.core.rmem_max",
		"warning: rank 2 has no segmentation to rank 3: the kernel refuses (EIO); ",
		"warning: 4 log lines were lost; the log is read too slowly, or cannot be written",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if o := d.Ranks[0].Offload; !reflect.DeepEqual(o, []string{"batches", "coalescing"}) {
		t.Errorf("%q", o)
	}
}

// TestRates are differences over the daemon's own clock.
func TestRates(t *testing.T) {
	state := func(n uint64) control.LocalRank {
		r := host(0, mpe.PeerSnapshot{
			Rank: 1, Sent: n, Received: n, BytesIn: 10 * n, BytesOut: 30 * n, PacketsOut: map[string]uint64{"DATA": n, "ACK": n},
			Dropped: mpe.DropCounts{mpe.DropStale: n, mpe.DropGap: 2 * n}, Events: mpe.EventCounts{mpe.EventRetransmitted: n / 2},
		}, mpe.PeerSnapshot{Rank: 2, Extended: &mpe.ExtendedSnapshot{RoundTrip: 1e-3, Retransmissions: n}})
		r.Engine.Posted, r.Engine.Unexpected = 3, 4
		return r
	}
	before, now := status(10, state(100)), status(12, state(300))
	d := Of(now, before)
	want := Rates{Known: true, Messages: 200, Bytes: 4000, Retransmissions: 50, Drops: 300}
	if p := d.Peers[0]; p.Rates != want || p.Drops != 900 || p.PacketsOut != 600 ||
		!reflect.DeepEqual(p.DropReasons, []Count{{"gap", 600}, {"stale", 300}}) || !p.Seen() {
		t.Errorf("%+v", p)
	}
	if p := d.Peers[1]; p.RoundTrip != 1e-3 || p.Retransmissions != 300 || p.Rates.Retransmissions != 100 {
		t.Errorf("%+v", p)
	}
	if d.Total.Messages != 200 || d.Total.Retransmissions != 150 || !d.Total.Known || d.Posted != 3 || d.Unexpected != 4 {
		t.Errorf("%+v", d)
	}
	// Counters of another run, or that were set back, make no rate.
	restarted := status(12, state(300))
	restarted.Started = started.Add(time.Second)
	for _, before := range []*control.Status{nil, now, restarted, status(13, state(1))} {
		if d := Of(now, before); d.Total.Known || d.Total.Messages != 0 {
			t.Errorf("%+v", d.Total)
		}
	}
	if d := Of(now, status(11, state(400))); d.Total.Messages != 0 || !d.Total.Known {
		t.Errorf("%+v", d.Total)
	}
	// A peer that was not there before has no rate.
	if d := Of(now, status(11, host(0))); d.Peers[0].Rates.Known {
		t.Errorf("%+v", d.Peers[0])
	}
}

// TestJSON has no null where a list is meant.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(Of(&control.Status{}, nil))
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}
