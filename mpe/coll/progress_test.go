package coll_test

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// BenchmarkProgress makes the schedule of rank 0 in a flat Allreduce of 4 ranks, and executes it without messages.
func BenchmarkProgress(b *testing.B) {
	a, err := coll.Find(coll.Allreduce, "flat")
	if err != nil {
		b.Fatal(err)
	}
	var s coll.Schedule
	var p coll.Progress
	c := coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 64, Elem: 4}
	begun := make([]int, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Make(&s, &c); err != nil {
			b.Fatal(err)
		}
		for p.Begin(&s); !p.IsDone(); {
			for _, number, ok := p.Next(); ok; _, number, ok = p.Next() {
				begun = append(begun, number)
			}
			last := len(begun) - 1
			p.MarkDone(begun[last])
			begun = begun[:last]
		}
	}
}
