package attach

import (
	"context"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestAllocations: neither a program nor the daemon allocates for a message, once
// the memory of those before it can be used again. Both are in this process.
func TestAllocations(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		size int
		many int // how many are under way at a time
	}{
		{"small", 4, 1},
		{"long", 3*chunkLen + 7, 1},
		{"many small", 64, 50},
		{"many long", chunkLen + 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := serve(t, newWorld(2, 0, 1), Options{})
			a, b := h.dial(t, 0), h.dial(t, 1)
			data, bufs := make([]byte, c.size), make([][]byte, c.many)
			for i := range bufs {
				bufs[i] = make([]byte, c.size)
			}
			ops := make([]mpe.Op, 0, 2*c.many)
			start := func(d mpe.Device, op mpe.Operation) {
				o, err := d.Start(op)
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, o)
			}
			round := func() {
				ops = ops[:0]
				for i := range c.many {
					if i%2 == 0 { // receives that wait, and messages that do
						start(b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: i, Buf: bufs[i]})
					}
					start(a, mpe.Operation{Kind: mpe.OpSendSync - mpe.OpKind(i%2), Peer: 1, Tag: i, Buf: data})
					if i%2 != 0 {
						start(b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: i, Buf: bufs[i]})
					}
				}
				for _, op := range ops {
					if _, err := op.Wait(ctx); err != nil {
						t.Fatal(err)
					}
					op.Free()
				}
				if _, _, err := a.Probe(ctx, mpe.Match{Source: 1}, false); err != nil {
					t.Fatal(err)
				}
			}
			for range 200 {
				round()
			}
			// What a collection takes from the pools is rounded off.
			if n := testing.AllocsPerRun(200, round); n != 0 && !raceEnabled {
				t.Errorf("a round allocates %v times", n)
			}
		})
	}
}
