package results

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestFind checks that a run is found by its name, by its machine, and by any part of these that belongs to one machine
// only.
func TestFind(t *testing.T) {
	names := Names()
	if len(names) == 0 || !slices.IsSortedFunc(names, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Fatal(names)
	}
	for _, name := range names {
		if got, err := Find(name); err != nil || got != name {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		got, err := Find(machineName(name))
		if err != nil || machineName(got) != machineName(name) || got < name {
			t.Errorf("%s: %s, %v", machineName(name), got, err)
		}
		text, err := Read(name)
		if err != nil || !json.Valid(text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for query, want := range map[string]string{"model-1": "model-1", "model-17": "model-17",
		"family-25-model-17-col": "collectives"} {
		if got, err := Find(query); err != nil || !strings.HasSuffix(got, "-"+want) {
			t.Errorf("%s: %s, %v", query, got, err)
		}
	}
	for query, matches := range map[string]bool{"no-such-machine": false, "": false, "2x-": true} {
		_, err := Find(query)
		if e, ok := errors.AsType[*NotFoundError](err); !ok || (len(e.Matches) > 1) != matches {
			t.Errorf("%q: %v", query, err)
		}
	}
}

func TestReasons(t *testing.T) {
	if len(Reasons()) == 0 {
		t.Error("no reasons")
	}
}
