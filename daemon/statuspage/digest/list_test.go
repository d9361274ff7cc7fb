package digest

import (
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestSort(t *testing.T) {
	trip := func(seconds float64) *state.Extended { return &state.Extended{RoundTrip: seconds} }
	ps := []*Peer{
		{Peer: 1, Rates: Rates{Bytes: 5}, State: &state.Peer{Extended: trip(3)}},
		{Peer: 2, OldestWait: 20, State: &state.Peer{}},
		{Peer: 3, State: &state.Peer{NetworkError: "x", Extended: trip(9)}},
		{Peer: 4, State: &state.Peer{Refuses: "x", BytesIn: 7}},
		{Peer: 5, OldestWait: 30, State: &state.Peer{}},
		{Peer: 6, Rates: Rates{Drops: 1}, State: &state.Peer{}},
		{Peer: 7, OldestWait: .5, Rates: Rates{Bytes: 100}, State: &state.Peer{}},
		{Peer: 8, State: &state.Peer{}},
	}
	for _, tt := range []struct {
		order Order
		want  string
	}{
		{ByProblem, "4 3 5 2 6 7 1 8 "}, {ByTraffic, "7 1 4 2 3 5 6 8 "}, {ByRoundTrip, "3 1 2 4 5 6 7 8 "},
		{ByRank, "1 2 3 4 5 6 7 8 "},
	} {
		Sort(ps, tt.order)
		got := ""
		for _, p := range ps {
			got += fmt.Sprint(p.Peer, " ")
		}
		if got != tt.want {
			t.Errorf("%v: %s, want %s", tt.order, got, tt.want)
		}
		if o, ok := ParseOrder(tt.order.String()); o != tt.order || !ok {
			t.Errorf("%v is parsed as %v", tt.order, o)
		}
	}
	if o, ok := ParseOrder("luck"); o != ByProblem || ok {
		t.Error(o, ok)
	}
	if len(Orders()) != len(orderNames) || Order(9).String() != "order(9)" {
		t.Error("orders without a name")
	}
}

func TestFilter(t *testing.T) {
	p := &Peer{Rank: 0, Peer: 17, State: &state.Peer{
		Kind: "fpga", Address: "10.1.2.3:2718", Profile: "cloudfpga", Transport: "udp", NetworkError: "No Route",
	}}
	d := &Digest{Peers: []Peer{*p}, Waits: []Wait{
		{Rank: 0, Peer: 17, Direction: Send, For: protocol.Ack, Seconds: mediumSeconds,
			Text: "rank 0 waits for ACK from rank 17"},
	}}
	for text, want := range map[string][2]bool{
		"": {true, true}, "17": {true, true}, "0": {true, true}, "1": {false, false}, "0>17": {true, true},
		"17>0":     {false, false},
		"fpga udp": {true, false}, "10.1.2": {true, false}, " route 17 ": {true, false}, "ack": {false, true},
		"FPGA 3": {false, false}, "send": {false, true},
	} {
		f := NewFilter(text)
		peers, _, _ := f.Peers(d, ByRank, true)
		waits, _ := f.Waits(d)
		if got := [2]bool{len(peers) == 1, len(waits) == 1}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
