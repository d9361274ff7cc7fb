package mpe_test

import (
	"encoding/json"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestNamesOfReasonsAndEvents: the engine's reasons and events have names of their own,
// and those of the state machines are among them.
func TestNamesOfReasonsAndEvents(t *testing.T) {
	drops, events := map[string]int{}, map[string]int{}
	for r := range mpe.NumDropReasons {
		drops[mpe.DropReason(r).String()]++
	}
	for ev := range mpe.NumEvents {
		events[mpe.Event(ev).String()]++
	}
	for _, names := range []map[string]int{drops, events} {
		for name, n := range names {
			if n != 1 {
				t.Errorf("%d constants are named %q", n, name)
			}
		}
	}
	for r := range handshake.NumReasons {
		drops[handshake.Reason(r).String()]++
	}
	for r := range extended.NumReasons {
		drops[extended.Reason(r).String()]++
	}
	for ev := range handshake.NumEvents {
		events[handshake.Event(ev).String()]++
	}
	for ev := range extended.NumEvents {
		events[extended.Event(ev).String()]++
	}
	if len(drops) != mpe.NumDropReasons || len(events) != mpe.NumEvents {
		t.Errorf("%d reasons and %d events in all, the engine has %d and %d", len(drops), len(events), mpe.NumDropReasons, mpe.NumEvents)
	}
}

func TestCountsInJSON(t *testing.T) {
	type both struct {
		Drops  mpe.DropCounts  `json:"drops,omitzero"`
		Events mpe.EventCounts `json:"events,omitzero"`
	}
	for _, tt := range []struct {
		in   both
		json string
	}{
		{both{}, `{}`},
		{both{Drops: mpe.DropCounts{mpe.DropStale: 3, mpe.DropGap: 1}}, `{"drops":{"gap":1,"stale":3}}`},
		{both{Events: mpe.EventCounts{mpe.EventReacked: 1 << 60}}, `{"events":{"reacked":1152921504606846976}}`},
	} {
		b, err := json.Marshal(tt.in)
		if err != nil || string(b) != tt.json {
			t.Errorf("%s, not %s: %v", b, tt.json, err)
		}
		var out both
		if err := json.Unmarshal(b, &out); err != nil || out != tt.in {
			t.Errorf("%s: %+v, %v", b, out, err)
		}
	}
	// A newer daemon may count what this version does not know.
	var c mpe.DropCounts
	if err := json.Unmarshal([]byte(`{"gap":2,"unheard_of":5}`), &c); err != nil || c != (mpe.DropCounts{mpe.DropGap: 2}) {
		t.Errorf("%v, %v", c, err)
	}
	if err := json.Unmarshal([]byte(`{"gap":"x"}`), &c); err == nil {
		t.Error("a count that is no number is accepted")
	}
}
