package attach

import (
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// TestRefusedAlike checks that a client rejects the same calls as a rank, and does so immediately.
func TestRefusedAlike(t *testing.T) {
	some := make([]byte, 64)
	for _, tt := range []struct {
		name   string
		change func(*collective.Operation)
		is     error
	}{
		{"members", func(m *collective.Operation) { m.Members = m.Members[:1] }, coll.ErrCall},
		{"another's rank", func(m *collective.Operation) { m.Call.Rank = 1 }, coll.ErrCall},
		{"rank", func(m *collective.Operation) { m.Call.Rank = -1 }, coll.ErrCall},
		{"member", func(m *collective.Operation) { m.Members[1] = 2 }, mpe.ErrRank},
		{"negative member", func(m *collective.Operation) { m.Members[1] = -1 }, mpe.ErrRank},
		{"root", func(m *collective.Operation) { m.Call.Collective, m.Call.Root = coll.Bcast, 2 }, coll.ErrCall},
		{"collective", func(m *collective.Operation) { m.Call.Collective = 99 }, coll.ErrCall},
		{"bytes", func(m *collective.Operation) { m.Call.Bytes = 5 }, coll.ErrCall},
		{"negative bytes", func(m *collective.Operation) { m.Call.Bytes = -4 }, coll.ErrCall},
		{"elements", func(m *collective.Operation) { m.Call.Elem = 8 }, coll.ErrCall},
		{"segment", func(m *collective.Operation) { m.Call.Segment = 6 }, coll.ErrCall},
		{"type", func(m *collective.Operation) { m.Type = op.Int64 }, coll.ErrCall},
		{"operation", func(m *collective.Operation) { m.Op, m.Type = op.BAnd, op.Float32 }, op.ErrUndefined},
		{"algorithm", func(m *collective.Operation) { m.Algorithm = "none" }, coll.ErrCall},
		{"another's algorithm", func(m *collective.Operation) { m.Algorithm = "toggle" }, coll.ErrCall},
		{"algorithm that cannot", func(m *collective.Operation) { m.Call.Ordered, m.Algorithm = true, "ring" },
			coll.ErrCall},
		{"layout", func(m *collective.Operation) {
			m.Call.Collective, m.Call.Vector, m.Call.Recv.Sizes = coll.Allgather, true, []int{4}
		}, coll.ErrCall},
		{"no layouts", func(m *collective.Operation) { m.Call.Vector = true }, coll.ErrCall},
		{"tag", func(m *collective.Operation) { m.Tag = -1 }, mpe.ErrTag},
		{"send buffer", func(m *collective.Operation) { m.Send = some[:12] }, coll.ErrCall},
		{"receive buffer", func(m *collective.Operation) { m.Recv = some[:12] }, coll.ErrCall},
		{"block", func(m *collective.Operation) { m.Call.Collective = coll.Alltoall }, coll.ErrCall},
		{"blocks", func(m *collective.Operation) {
			m.Call.Collective, m.Call.Vector = coll.Allgather, true
			m.Call.Recv = coll.Layout{Sizes: []int{4, 4}, Offsets: []int{0, 16}}
		}, coll.ErrCall},
	} {
		devices := engines(t, 2, nil)
		client := attachSome(t, devices, 0)[0]
		var texts []string
		for _, d := range []mpe.Device{devices[0], client} {
			m := callOf(coll.Allreduce, 0, 2, 1, some[:16], some[32:48])
			tt.change(m)
			_, err := d.StartCollective(m)
			if !errors.Is(err, tt.is) {
				t.Errorf("%s: %T: %v", tt.name, d, err)
				continue
			}
			texts = append(texts, err.Error())
		}
		if len(texts) == 2 && texts[0] != texts[1] {
			t.Errorf("%s: the rank says %q, and the client %q", tt.name, texts[0], texts[1])
		}
	}
}

// words makes engines use the FPGAs' profile for messages with rank 0.
func words(a, b int, p *mpe.Peer) {
	if a == 0 || b == 0 {
		p.Extended = nil
	}
}

// TestWholeWords checks that a client knows which wires carry only whole words.
func TestWholeWords(t *testing.T) {
	devices := engines(t, 3, words)
	mixed := attachSome(t, devices, 0, 2)
	for _, algorithm := range []string{"", "flat"} {
		for _, d := range []mpe.Device{devices[0], mixed[0]} {
			m := callOf(coll.Bcast, 0, 3, 0, nil, make([]byte, 5))
			m.Call.Elem, m.Algorithm = 1, algorithm
			if _, err := d.StartCollective(m); !errors.Is(err, mpe.ErrLength) ||
				!strings.Contains(err.Error(), "Bcast by flat has a message of 5 bytes between rank 0 and rank 1") {
				t.Errorf("%T: %v", d, err)
			}
		}
	}
	for i, calls := range attachtest.AllCalls(3, []int{4, 1000}) {
		if c := calls[0]; !c.Vector && c.Collective != coll.Barrier {
			round(t, mixed, calls, 2*i, "") // ranks in order
		}
	}
}
