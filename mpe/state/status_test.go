package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// TestMember checks that only ranks of the cluster have entries.
func TestMember(t *testing.T) {
	s := Status{Cluster: []Member{{Rank: 0}, {Rank: 1}}}
	for rank, member := range map[int]*Member{-1: nil, 0: &s.Cluster[0], 1: &s.Cluster[1], 2: nil} {
		if got := s.Member(rank); got != member {
			t.Errorf("rank %d: %+v", rank, got)
		}
	}
}

// TestWarnings checks that a status names exactly the parts that may be missing or wrong.
func TestWarnings(t *testing.T) {
	all := make([]int, maxNumbers+2)
	for i := range all {
		all[i] = i
	}
	for _, tt := range []struct {
		status Status
		want   []string
	}{
		{Status{}, nil},
		{Status{Silent: []int{}, UnreadRanks: []int{}}, nil},
		{Status{Job: "j", ForeignUser: new(0)}, []string{"job j belongs to user 0"}},
		{Status{Silent: []int{3}}, []string{"do not answer: 3"}},
		{Status{UnreadRanks: []int{3, 5}}, []string{"(16 MiB, or 4 MiB of a job of another user): 3 5"}},
		{Status{Silent: []int{1}, UnreadRanks: []int{2}}, []string{"do not answer: 1", "user): 2"}},
		{Status{Silent: all[:maxNumbers]}, []string{fmt.Sprintf(" %d", maxNumbers-1)}},
		{Status{Silent: all[:maxNumbers+1]}, []string{fmt.Sprintf(" %d and 1 more", maxNumbers-1)}},
		{Status{Silent: all}, []string{fmt.Sprintf(" %d and 2 more", maxNumbers-1)}},
	} {
		got := tt.status.Warnings()
		if !slices.EqualFunc(got, tt.want, func(got, want string) bool {
			return strings.HasPrefix(got, want) ||
				strings.HasSuffix(got, want)
		}) {
			t.Errorf("%+v: %q, not %q", tt.status, got, tt.want)
		}
	}
}

// TestCounts checks that counts are encoded as objects of the non-zero values, and that names of a later version
// are ignored.
func TestCounts(t *testing.T) {
	drops, events := DropCounts{DropNone: 1, DropCode: 2}, EventCounts{EventRetransmitted: 3, EventBlackHole: 4}
	for _, tt := range []struct {
		counts any
		want   string
	}{
		{DropCounts{}, "{}"},
		{drops, `{"code":2,"none":1}`},
		{EventCounts{}, "{}"},
		{events, `{"black_hole":4,"retransmitted":3}`},
	} {
		if got, err := json.Marshal(tt.counts); err != nil || string(got) != tt.want {
			t.Errorf("%s, %v, not %s", got, err, tt.want)
		}
	}
	readDrops, readEvents := DropCounts{DropStale: 9}, EventCounts{EventReacked: 9}
	if err := json.Unmarshal([]byte(`{"code":2,"none":1,"later":7}`), &readDrops); err != nil || readDrops != drops {
		t.Errorf("%v, %v", readDrops, err)
	}
	if err := json.Unmarshal([]byte(`{"black_hole":4,"later":7,"retransmitted":3}`), &readEvents); err != nil ||
		readEvents != events {
		t.Errorf("%v, %v", readEvents, err)
	}
	if err := json.Unmarshal([]byte(`{"none":"one"}`), &readDrops); err == nil || readDrops != drops {
		t.Errorf("%v, %v", readDrops, err)
	}
	if got := events.String(); got != "retransmitted 3, black_hole 4" {
		t.Errorf("%q", got)
	}
	if got := (EventCounts{}).String(); got != "" {
		t.Errorf("%q of none", got)
	}
	for reason, want := range map[DropReason]string{DropNone: "none", DropCode: "code",
		numDropReasons: fmt.Sprintf("reason(%d)", NumDropReasons)} {
		if got := reason.String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestRoundTrip checks that an unknown round trip is null.
func TestRoundTrip(t *testing.T) {
	for seconds, want := range map[float64]string{0: "null", 1e-9: "1e-9", 0.5: "0.5"} {
		text, err := json.Marshal(Extended{RoundTrip: seconds})
		var got map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || string(got["round_trip_seconds"]) != want {
			t.Errorf("%v: %s, %v", seconds, got["round_trip_seconds"], err)
		}
	}
}

// TestRequestsCleared checks that RequestsCleared is true only if the peer requests again to send a message that
// was cleared.
func TestRequestsCleared(t *testing.T) {
	for _, tt := range []struct {
		deferred *Deferred
		wait     *Wait
		want     bool
	}{
		{nil, nil, false},
		{nil, &Wait{State: handshake.WaitData}, false},
		{new(Deferred), nil, false},
		{new(Deferred), &Wait{State: handshake.WaitRequest}, false},
		{new(Deferred), &Wait{State: handshake.Held}, false},
		{new(Deferred), &Wait{State: handshake.WaitData}, true},
		{new(Deferred), &Wait{State: handshake.Receiving}, true},
	} {
		p := Peer{Deferred: tt.deferred, Receiving: tt.wait}
		if p.RequestsCleared() != tt.want {
			t.Errorf("%+v, %+v: not %v", tt.deferred, tt.wait, tt.want)
		}
	}
}

// TestBlockReason checks that the exchange of a kernel is blocked by the problem of its program, or by a
// signal of its role.
func TestBlockReason(t *testing.T) {
	waits := &Simulation{Cycle: 90, Signal: "s", Since: 7, Text: "low"}
	fault := &Simulation{Cycle: 90, Signal: "s", Since: 7, Text: "low", Fault: true}
	for _, tt := range []struct {
		kernel Kernel
		want   string
	}{
		{Kernel{}, ""},
		{Kernel{Simulation: &Simulation{Cycle: 90, Text: "the network"}}, ""},
		{Kernel{Simulation: waits}, "s since cycle 7 (now 90): low"},
		{Kernel{Simulation: fault}, "s at cycle 7: low"},
		{Kernel{Problem: "it exited", Simulation: waits}, "it exited"},
	} {
		if got := tt.kernel.BlockReason(); got != tt.want {
			t.Errorf("%+v: %q, not %q", tt.kernel, got, tt.want)
		}
	}
}
