package mpe_test

import (
	"encoding/json"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestNamesOfReasonsAndEvents checks that the names of the engine's reasons and events are unique, and include the
// names of the state machines' reasons and events.
func TestNamesOfReasonsAndEvents(t *testing.T) {
	drops, events := map[string]int{}, map[string]int{}
	for r := range state.NumDropReasons {
		drops[state.DropReason(r).String()]++
	}
	for ev := range state.NumEvents {
		events[state.Event(ev).String()]++
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
	if len(drops) != state.NumDropReasons || len(events) != state.NumEvents {
		t.Errorf("%d reasons and %d events in all, the engine has %d and %d", len(drops), len(events),
			state.NumDropReasons, state.NumEvents)
	}
}

func TestCountsInJSON(t *testing.T) {
	type both struct {
		Drops  state.DropCounts  `json:"drops,omitzero"`
		Events state.EventCounts `json:"events,omitzero"`
	}
	for _, tt := range []struct {
		in   both
		json string
	}{
		{both{}, `{}`},
		{both{Drops: state.DropCounts{state.DropStale: 3, state.DropGap: 1}}, `{"drops":{"gap":1,"stale":3}}`},
		{both{Events: state.EventCounts{state.EventReacked: 1 << 60}}, `{"events":{"reacked":1152921504606846976}}`},
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
	// A newer daemon may count reasons that this version does not know.
	var c state.DropCounts
	if err := json.Unmarshal([]byte(`{"gap":2,"unheard_of":5}`), &c); err != nil ||
		c != (state.DropCounts{state.DropGap: 2}) {
		t.Errorf("%v, %v", c, err)
	}
	if err := json.Unmarshal([]byte(`{"gap":"x"}`), &c); err == nil {
		t.Error("a count that is no number is accepted")
	}
}
