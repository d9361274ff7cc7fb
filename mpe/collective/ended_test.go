package collective

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// TestEndedCalls checks that the last calls are kept, with the values in which the members of a call must agree.
func TestEndedCalls(t *testing.T) {
	w := newWorld(2, nil)
	if list := (*w)[0].calls.EndedCalls(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	const calls = maxRecentCalls + 3
	for tag := 1; tag <= calls; tag++ {
		w.all(t, tag, func(int) Operation {
			return Operation{Call: coll.Call{Collective: coll.Bcast, Root: tag % 2, Bytes: tag},
				Recv: make([]byte, tag)}
		})
	}
	for rank := range *w {
		list := (*w)[rank].calls.EndedCalls()
		if len(list) != maxRecentCalls {
			t.Fatalf("%+v", list)
		}
		for i, c := range list {
			if number := calls - maxRecentCalls + 1 + i; c.Number != number || c.Collective != "Bcast" || c.Bytes != number ||
				c.Root == nil || *c.Root != number%2 || c.Failed {
				t.Errorf("rank %d, call %d: %+v", rank, number, c)
			}
		}
	}
}
