package digest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var started = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// status returns a status with the given local ranks in a cluster of ten ranks.
func status(uptime float64, ranks ...state.Rank) *state.Status {
	s := &state.Status{PID: 7, Started: started, Uptime: uptime, Ranks: ranks, Cluster: make([]state.Member, 10)}
	for i := range s.Cluster {
		s.Cluster[i].Rank = i
	}
	for _, r := range ranks {
		s.Cluster[r.Rank].Role = r.Role
	}
	return s
}

func host(rank int, peers ...state.Peer) state.Rank {
	return state.Rank{RankInfo: state.RankInfo{Rank: rank, Role: state.RoleHost},
		Engine: state.Engine{Rank: rank, Peers: peers}}
}

func standIn(rank int, peers ...state.Peer) state.Rank {
	r := host(rank, peers...)
	r.Role, r.Kernel, r.KernelState = state.RoleStandin, "echo", state.KernelRunning
	return r
}

func sends(to int, seconds float64) state.Peer {
	return state.Peer{Rank: to, Sending: &state.Wait{
		State: handshake.WaitClear, WaitsFor: protocol.ClearToSend, Seconds: seconds, Words: 16, Retransmissions: 2,
		Text: "it waits for CLEAR_TO_SEND",
	}}
}

func receives(from int, seconds float64) state.Peer {
	return state.Peer{Rank: from,
		Receiving: &state.Wait{State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: seconds,
			Text: "it waits"}}
}

func both(to int, seconds float64) state.Peer {
	p := sends(to, seconds)
	p.Receiving = receives(to, seconds/2).Receiving
	return p
}

// TestWaits checks that the oldest waits come first, that kernels waiting for work do not count, and that a
// remote rank's wait is listed only once.
func TestWaits(t *testing.T) {
	any := host(0, sends(1, 5), state.Peer{Rank: 6, Deferred: &state.Deferred{Call: "MPI_SEND_INT", Seconds: 9}},
		state.Peer{Rank: 7, UnansweredClear: &state.Deferred{Call: "RECV_INT", Seconds: 2}})
	any.Engine.AnySource = &state.Wait{State: handshake.WaitRequest, Seconds: 3, Text: "any"}
	idle := standIn(1, receives(0, 100), state.Peer{Rank: 0, Deferred: &state.Deferred{Seconds: 7}})
	idle.Engine.AnySource = &state.Wait{Seconds: 100}
	d := New(status(1, any, idle), nil)
	var got []string
	for _, w := range d.Waits {
		got = append(got, w.Text)
	}
	want := []string{
		"rank 6 is blocked in a send (MPI_SEND_INT) to rank 0, which has no matching receive posted",
		"it waits for CLEAR_TO_SEND", "any",
		"rank 7 is blocked in a receive (RECV_INT) from rank 0, which has no matching send",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if w := d.Waits[1]; w.Rank != 0 || w.Peer != 1 || w.Direction != Send || w.Bytes != 64 || w.Retransmissions != 2 ||
		w.Age() != Medium || w.Detail() != "message of 64 B, 2 retransmissions" {
		t.Errorf("%+v", w)
	}
	if w := (Wait{Direction: Receive, For: protocol.SendRequest, Bytes: 40}); w.Detail() != "buffer of 40 B" {
		t.Error(w.Detail())
	}
	if w := d.Waits[0]; w.Rank != 6 || w.Peer != 0 || !w.Remote || w.Detail() != "known from its SEND_REQUEST" {
		t.Errorf("%+v", w)
	}
	if w := d.Waits[3]; w.Rank != 7 || w.Peer != 0 || !w.Remote || w.Direction != Receive || w.For != protocol.Data {
		t.Errorf("%+v", w)
	}
	if d.Waits[2].Peer != AnyRank {
		t.Errorf("%+v", d.Waits[2])
	}
	for i, want := range []float64{5, 9, 2, 0, 0} {
		if p := d.Peers[i]; p.OldestWait != want {
			t.Errorf("rank %d, peer %d: %v, want %v", p.Rank, p.Peer, p.OldestWait, want)
		}
	}
}

// TestWaitsOncePerPair checks that later operations of the same pair are counted, and that a send whose call is done
// hides no other wait and closes no cycle.
func TestWaitsOncePerPair(t *testing.T) {
	gone := sends(1, 9)
	gone.Sending.Cancelled, gone.Receiving, gone.QueuedReceives = true, receives(1, 4).Receiving, 1
	d := New(status(1, host(0, gone, both(2, 6)), host(1, receives(0, 5))), nil)
	var got []string
	for i := range d.Waits {
		w := &d.Waits[i]
		got = append(got, fmt.Sprintf("%d>%d %s %d %v", w.Rank, w.Peer, w.Direction, w.LaterOperations, w.Cancelled))
	}
	if want := []string{"0>1 send 0 true", "0>2 send 1 false", "1>0 receive 0 false",
		"0>1 receive 0 false"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if w := d.Waits[1]; w.Detail() != "message of 64 B, 2 retransmissions, and 1 later operation" {
		t.Error(w.Detail())
	}
	if want := []Cycle{{[]int{1, 0}, 4, "cycle 1 → 0 → 1"}}; !reflect.DeepEqual(d.Cycles, want) {
		t.Errorf("%+v", d.Cycles)
	}
}

// TestPairsOnce checks that the single entry for two local ranks contains the problems seen by both.
func TestPairsOnce(t *testing.T) {
	other := state.Peer{Rank: 0, MessageCounts: state.MessageCounts{Retransmissions: 2}, Refuses: "wedged",
		Unexpected: 1, PacketsIn: 1}
	own := state.Peer{Rank: 1, MessageCounts: state.MessageCounts{Retransmissions: 3}, PacketsIn: 1}
	own.Events[state.EventCrossed], other.Events[state.EventCrossed] = 1, 2
	d := New(status(1, host(0, own, state.Peer{Rank: 7, PacketsIn: 1}), host(1, other)), nil)
	fit, _, _ := NewFilter("").Peers(d, ByRank, false)
	if want := []Count{{"crossed", 3}}; !slices.Equal(fit[0].EventCounts(), want) {
		t.Errorf("events %v", fit[0].EventCounts())
	}
	if len(fit) != 2 || fit[0].Peer != 1 || fit[0].Retransmissions != 5 || fit[0].Refuses != "wedged" ||
		fit[0].Unexpected != 1 || fit[1].Peer != 7 {
		t.Errorf("%+v", fit)
	}
	if len(d.Peers) != 3 || d.Peers[0].Retransmissions != 3 {
		t.Error("the digest is changed")
	}
}

func TestCycles(t *testing.T) {
	deferred := func(from int, seconds float64) state.Peer {
		p := receives(from, 20)
		p.Deferred = &state.Deferred{Call: "x", Seconds: seconds}
		return p
	}
	cleared := func(p state.Peer) state.Peer {
		p.Receiving.State, p.Receiving.WaitsFor = handshake.WaitData, protocol.Data
		return p
	}
	anySource := host(0)
	anySource.Engine.AnySource = &state.Wait{Seconds: 50}
	ring := make([]state.Rank, 10)
	for i := range ring {
		ring[i] = host(i, sends((i+1)%10, 30))
	}
	for name, tt := range map[string]struct {
		ranks []state.Rank
		want  []Cycle
	}{
		"no wait":   {[]state.Rank{host(0), host(1)}, nil},
		"one waits": {[]state.Rank{host(0, receives(1, 9)), host(1)}, nil},
		"brief":     {[]state.Rank{host(0, receives(1, 9)), host(1, receives(0, .9))}, nil},
		"two receive": {[]state.Rank{host(0, receives(1, 9)), host(1, receives(0, 4))},
			[]Cycle{{[]int{0, 1}, 4, "cycle 0 → 1 → 0"}}},
		"two send": {[]state.Rank{host(0, sends(1, 3)), host(1, sends(0, 4))},
			[]Cycle{{[]int{1, 0}, 3, "cycle 1 → 0 → 1"}}},
		"kernel idles": {[]state.Rank{host(0, receives(1, 9)), standIn(1, receives(0, 9))}, nil},
		"kernel sends": {[]state.Rank{host(0, sends(1, 9)), standIn(1, sends(0, 8))},
			[]Cycle{{[]int{0, 1}, 8, "cycle 0 → 1 → 0"}}},
		"remote":      {[]state.Rank{host(0, deferred(7, 6))}, []Cycle{{[]int{0, 7}, 6, "cycle 0 → 7 → 0"}}},
		"one message": {[]state.Rank{host(0, cleared(deferred(7, 6)))}, nil},
		"any source":  {[]state.Rank{anySource, host(1, receives(0, 4))}, nil},
		"three": {[]state.Rank{host(0, receives(1, 9)), host(1, receives(2, 8)), host(2, receives(0, 7))},
			[]Cycle{{[]int{0, 1, 2}, 7, "cycle 0 → 1 → 2 → 0"}}},
		"a tail": {[]state.Rank{host(0, receives(1, 90)), host(1, receives(2, 8)), host(2, receives(1, 7))},
			[]Cycle{{[]int{1, 2}, 7, "cycle 1 → 2 → 1"}}},
		"the shortest": {[]state.Rank{host(0, receives(1, 9)), host(1, receives(2, 8), receives(0, 3)),
			host(2, receives(0, 7))}, []Cycle{{[]int{0, 1}, 3, "cycle 0 → 1 → 0"}}},
		"twice the pair": {[]state.Rank{host(0, both(1, 8)), host(1, both(0, 6))},
			[]Cycle{{[]int{0, 1}, 6, "cycle 0 → 1 → 0"}}},
		"two cycles": {[]state.Rank{host(0, receives(1, 9)), host(1, receives(0, 9)), host(2, receives(3, 5)),
			host(3, receives(2, 5))},
			[]Cycle{{[]int{0, 1}, 9, "cycle 0 → 1 → 0"}, {[]int{2, 3}, 5, "cycle 2 → 3 → 2"}}},
		"long": {ring, []Cycle{{[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 30,
			"cycle 0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → … → 9 → 0"}}},
	} {
		d := New(status(1, tt.ranks...), nil)
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

// TestManyCycles checks that the number of reported cycles is limited.
func TestManyCycles(t *testing.T) {
	var ranks []state.Rank
	for i := 0; i < 4*maxCycles; i += 2 {
		ranks = append(ranks, host(i, receives(i+1, 9)), host(i+1, receives(i, 9)))
	}
	s := &state.Status{Ranks: ranks}
	if got := len(New(s, nil).Cycles); got != maxCycles {
		t.Errorf("%d cycles", got)
	}
}

func TestProblems(t *testing.T) {
	r := standIn(2, state.Peer{Rank: 0, NetworkError: "no route"}, state.Peer{Rank: 1, Refuses: "it is wedged"})
	r.KernelState, r.KernelError = state.KernelFailed, "exit status 1"
	r.KernelStats, r.KernelBlockReason = &state.Kernel{Simulation: &state.Simulation{Fault: true}},
		"soMPI_data_tlast at cycle 9: not set"
	r.ReceiveBufferRequested, r.ReceiveBuffer = 1<<22, 1<<20
	r.Offload = &state.Offload{Batches: true, Coalescing: true,
		Refused: []state.OffloadRefused{{Peer: 3, Error: "EIO"}}}
	s := status(1, r)
	s.LostLogLines = 4
	d := New(s, nil)
	var got []string
	for _, tr := range d.Problems {
		level, err := tr.Severity.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(level)+": "+tr.Text+"; "+tr.Action)
	}
	want := []string{
		"failure: rank 2: kernel echo failed: exit status 1; restart zrlmpid",
		"failure: rank 2: its role, in simulation, breaks the rules of its interface: soMPI_data_tlast at cycle 9: " +
			"not set; correct the role, and restart zrlmpid",
		"failure: rank 2 refuses to send to rank 1: it is wedged; when rank 1 has recovered: zrlctl reset 1 --from 2",
		"warning: no route; ",
		"warning: rank 2: the kernel granted a receive buffer of 1MiB instead of 4MiB; raise net.core.rmem_max",
		"warning: rank 2: the kernel refused UDP segmentation to rank 3: EIO; ",
		"warning: 4 log lines lost; make sure that the log can be written and is read fast enough",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if o := d.Ranks[0].OffloadText(); o != "batches, coalescing" {
		t.Errorf("%q", o)
	}
}

// TestNoProblems checks that the text for a daemon without problems mentions failed operations.
func TestNoProblems(t *testing.T) {
	failed := func(n, each int) *state.Status {
		s := &state.Status{}
		for range n {
			s.Failures = append(s.Failures, state.Failure{Time: started.Local(), Count: each})
		}
		return s
	}
	last := started.Local().Format(time.DateTime)
	for s, want := range map[*state.Status]string{
		failed(0, 0): "no problems found",
		failed(1, 0): "1 operation failed, the last one at " + last + "; no other problems found",
		failed(9, 2): "18 operations failed, the last one at " + last + "; no other problems found",
		failed(state.MaxFailures, 1): "at least 100 operations failed, the last one at " + last +
			"; no other problems found",
	} {
		if got := NoProblems(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRates checks that rates are computed from differences over the daemon's own clock.
func TestRates(t *testing.T) {
	counted := func(n uint64) state.Rank {
		r := host(0, state.Peer{
			Rank: 1, MessageCounts: state.MessageCounts{Sent: n, Received: n, Retransmissions: n / 2}, BytesIn: 10 * n,
			BytesOut:   30 * n,
			PacketsOut: state.PacketCounts{protocol.Data: n, protocol.Ack: n},
			Dropped:    state.DropCounts{state.DropStale: n, state.DropGap: 2 * n},
		}, state.Peer{Rank: 2, MessageCounts: state.MessageCounts{Retransmissions: n},
			Extended: &state.Extended{RoundTrip: 1e-3}})
		r.Engine.Posted, r.Engine.Unexpected = 3, 4
		return r
	}
	before, now := status(10, counted(100)), status(12, counted(300))
	d := New(now, before)
	want := Rates{Known: true, Messages: 200, Bytes: 4000, Retransmissions: 50, Drops: 300}
	if p := d.Peers[0]; p.Rates != want || p.Drops != 900 || p.PacketsSent != 600 ||
		!reflect.DeepEqual(p.DropReasons(), []Count{{"gap", 600}, {"stale", 300}}) || !p.Active() {
		t.Errorf("%+v", p)
	}
	if p := d.Peers[1]; p.RoundTrip() != 1e-3 || p.Retransmissions != 300 || p.Rates.Retransmissions != 100 {
		t.Errorf("%+v", p)
	}
	if d.Total.Messages != 200 || d.Total.Retransmissions != 150 || !d.Total.Known || d.Posted != 3 ||
		d.Unexpected != 4 {
		t.Errorf("%+v", d)
	}
	// Counters of another run, or counters that have been reset, give no rate.
	restarted := status(12, counted(300))
	restarted.Started = started.Add(time.Second)
	for _, before := range []*state.Status{nil, now, restarted, status(13, counted(1))} {
		if d := New(now, before); d.Total.Known || d.Total.Messages != 0 {
			t.Errorf("%+v", d.Total)
		}
	}
	if d := New(now, status(11, counted(400))); d.Total.Messages != 0 || !d.Total.Known {
		t.Errorf("%+v", d.Total)
	}
	// A new peer has no rate.
	if d := New(now, status(11, host(0))); d.Peers[0].Rates.Known {
		t.Errorf("%+v", d.Peers[0])
	}
}

// TestJSON checks that lists are never null, and that values that have not been measured are null.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(New(&state.Status{}, nil))
	const unknown = `"total":{"known":false,"messages_per_second":null,"bytes_per_second":null,"retransmissions_per_second":null,"drops_per_second":null}`
	if err != nil || strings.Contains(strings.Replace(string(text), unknown, "", 1), "null") ||
		!strings.Contains(string(text), unknown) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestOffloadText(t *testing.T) {
	for _, tt := range []struct {
		offload *state.Offload
		want    string
	}{
		{nil, "-"},
		{&state.Offload{}, "none"},
		{&state.Offload{Disabled: true}, "disabled"},
		{&state.Offload{Batches: true}, "batches"},
		{&state.Offload{Batches: true, Coalescing: true}, "batches, coalescing"},
		{&state.Offload{Batches: true, Disabled: true}, "batches, others disabled"},
	} {
		if got := (&Rank{RankInfo: &state.RankInfo{Offload: tt.offload}}).OffloadText(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.offload, got, tt.want)
		}
	}
}
