package attach

import (
	"context"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// TestAllocations checks that neither the program nor the daemon allocates for a message once the memory of
// earlier messages can be reused. Both run in this process.
func TestAllocations(t *testing.T) {
	ctx, rounds := context.Background(), 200
	if race.Enabled {
		rounds = 10
	}
	for _, c := range []struct {
		name string
		size int
		many int // number of messages in flight
	}{
		{"small", 4, 1},
		{"long", 3*wire.ChunkLen + 7, 1},
		{"many small", 64, 50},
		{"many long", wire.ChunkLen + 1, 4},
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
					if i%2 == 0 { // both receives that wait and messages that wait
						start(b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: i, Buf: bufs[i]})
					}
					start(a, mpe.Operation{Kind: mpe.OpSendSync - mpe.OpKind(i%2), Peer: 1, Tag: i, Buf: data})
					if i%2 != 0 {
						start(b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: i, Buf: bufs[i]})
					}
				}
				for _, op := range ops {
					if _, err := op.Await(ctx); err != nil {
						t.Fatal(err)
					}
					op.Free()
				}
				if _, _, err := a.Probe(ctx, mpe.Match{Source: 1}, false); err != nil {
					t.Fatal(err)
				}
			}
			for range rounds {
				round()
			}
			// AllocsPerRun rounds down, so occasional collections of the pools do not count.
			if n := testing.AllocsPerRun(rounds, round); n != 0 && !race.Enabled {
				t.Errorf("a round allocates %v times", n)
			}
		})
	}
}

// mirror is a rank whose calls immediately return their input.
type mirror struct{ *fakeRank }

func (m *mirror) StartCollective(c *collective.Operation) (mpe.Op, error) {
	copy(c.Recv, c.Send)
	return mirrored{}, nil
}

// mirrored is a call made on a mirror.
type mirrored struct{}

var noStatus mpe.Status

func (mirrored) Await(context.Context) (*mpe.Status, error) { return &noStatus, nil }
func (mirrored) Test() (mpe.Status, bool, error)            { return mpe.Status{}, true, nil }
func (mirrored) Result() (*mpe.Status, error)               { return &noStatus, nil }
func (mirrored) LibraryData() *any                          { return nil }
func (mirrored) Cancel()                                    {}
func (mirrored) Notify(chan<- struct{})                     {}
func (mirrored) OnEnd(then func(), _ func() bool)           { then() }
func (mirrored) Free()                                      {}

// TestCallAllocations is like TestAllocations, but for collective calls.
func TestCallAllocations(t *testing.T) {
	ctx := context.Background()
	h := serveDevices(t, []mpe.Device{&mirror{newWorld(2, 0).ranks[0]}}, Options{})
	c := h.dial(t, 0)
	layout := coll.Layout{Sizes: []int{8, 4}, Offsets: []int{16, 4}}
	for _, n := range []int{0, 4, wire.CopyLen + 4, 3*wire.ChunkLen + 8} {
		send, recv := make([]byte, max(n, 24)), make([]byte, max(n, 24))
		list := []collective.Operation{
			{Call: coll.Call{Collective: coll.Allreduce, Bytes: n, Elem: 4}, Op: op.Sum, Type: op.Int32},
			{Call: coll.Call{Collective: coll.Allreduce, Bytes: n, Elem: 4}, Op: op.Sum, Type: op.Int32,
				Algorithm: "recursive-doubling"},
			{Call: coll.Call{Collective: coll.Bcast, Bytes: n}},
			{Call: coll.Call{Collective: coll.Barrier}},
			{Call: coll.Call{Collective: coll.Alltoall, Vector: true, Send: layout, Recv: layout}},
		}
		for i := range list {
			m := &list[i]
			m.Call.Ranks, m.Comm, m.Tag, m.Send, m.Recv, m.Members = 2, uint32(i)+1, 1, send, recv, []int{0, 1}
			round := func() {
				o, err := c.StartCollective(m)
				if err == nil {
					_, err = o.Await(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
				o.Free()
			}
			for range 20 {
				round()
			}
			most := 0.0
			switch {
			case m.Algorithm != "": // the search creates a list of names and copies the call
				most = 2
			case m.Call.Vector: // layouts are read from copies of the call
				most = 2
			}
			if allocs := testing.AllocsPerRun(50, round); allocs > most && !race.Enabled {
				t.Errorf("%v of %d bytes allocates %v times", m.Call.Collective, n, allocs)
			}
		}
	}
}
