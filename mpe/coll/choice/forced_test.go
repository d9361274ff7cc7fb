package choice_test

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// TestForcedChoose checks that a forced algorithm is chosen if it supports the call.
func TestForcedChoose(t *testing.T) {
	f, err := collectives.ParseForced("bcast=atomic:10,allreduce=ring")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		call coll.Call
		want string
	}{
		{coll.Call{Collective: coll.Bcast, Ranks: 2, Flows: true}, "atomic:10"},
		{coll.Call{Collective: coll.Bcast, Ranks: 2, Flows: true, Elem: 4}, "atomic:8"},
		{coll.Call{Collective: coll.Bcast, Ranks: 2}, ""},
		{coll.Call{Collective: coll.Bcast, Ranks: 1, Flows: true}, ""},
		{coll.Call{Collective: coll.Allreduce, Ranks: 2}, "ring"},
		{coll.Call{Collective: coll.Allreduce, Ranks: 2, Ordered: true}, ""},
		{coll.Call{Collective: coll.Reduce, Ranks: 2}, ""},
	} {
		got, ok := f.Choose(&x.call)
		if got.String() != x.want || ok != (x.want != "") {
			t.Errorf("%+v: %v, %v", x.call, got, ok)
		}
		if n := testing.AllocsPerRun(10, func() { f.Choose(&x.call) }); n > 0 {
			t.Errorf("%+v: %v allocations", x.call, n)
		}
	}
}
