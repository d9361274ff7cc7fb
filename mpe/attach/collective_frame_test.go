package attach

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// described returns a call as a client describes it. It is made by ranks 1 to c.Ranks of a larger world.
func described(c coll.Call, algorithm string) (*collectiveOp, *collective.Operation) {
	m := &collective.Operation{Call: c, Comm: 5, Tag: 6, Algorithm: algorithm}
	for i := range c.Ranks {
		m.Members = append(m.Members, 1+i)
	}
	send, recv := collcheck.Buffers(&c)
	m.Send, m.Recv = attachtest.Pattern(1, send), attachtest.Pattern(2, recv)
	x := new(collectiveOp)
	x.init(9, m, c.Ranks+1)
	return x, m
}

// written returns all the bytes that a client writes for a call.
func written(x *collectiveOp, chunk int) (b []byte) {
	for more := true; more; {
		var payload []byte
		if b, payload, more = x.buildFrame(b, len(b) > 0, chunk); true {
			b = append(b, payload...)
		}
	}
	return b
}

// TestCallFrames checks that calls are read as they were written, in pieces of any size.
func TestCallFrames(t *testing.T) {
	for i, calls := range attachtest.AllCalls(5, []int{0, 38, wire.CopyLen + 2}) {
		for r := range calls {
			c := calls[r]
			x, m := described(c, "name")
			chunk := []int{40, 1000, wire.ChunkLen}[i%3]
			r := wire.NewReader(bytes.NewReader(written(x, chunk)))
			var got wire.Call
			var b []byte
			for uint64(len(b)) < x.Length || len(b) == 0 {
				if err := r.Next(); err != nil {
					t.Fatal(err)
				}
				var err error
				if b == nil {
					got, err = r.ReadCall()
				} else {
					_, err = r.ReadID()
				}
				if err != nil || r.Remaining > chunk || b != nil && r.Remaining == 0 {
					t.Fatalf("%+v: %d bytes, %v", c, r.Remaining, err)
				}
				b = append(b, make([]byte, r.Remaining)...)
				if err := r.Read(b[len(b)-r.Remaining:]); err != nil {
					t.Fatal(err)
				}
			}
			if got != x.Call || uint64(len(b)) != got.Length {
				t.Fatalf("%+v, and not %+v", got, x.Call)
			}
			asked := got.CollCall()
			length := int(got.DescriptionLen())
			members, name, _, ok := got.ReadDescription(b[:length], &asked, nil)
			if !ok || string(name) != "name" || len(members) != 4*c.Ranks || wire.Order.Uint32(members[4:]) != 2 {
				t.Fatalf("%+v: %q, %x, %v", c, name, members, ok)
			}
			if err := asked.Check(); err != nil {
				t.Fatal(err)
			}
			// The daemon's buffers are as long as the checker requires for this call.
			s := wire.ShapeOf(&asked)
			send, recv := collcheck.Buffers(&asked)
			if c.Collective == coll.Exscan && c.Rank == 0 && !c.InPlace {
				recv = 0
			}
			if s != wire.ShapeOf(&m.Call) || s.Recv != recv || !s.InRecv && s.Payload != send ||
				s.Payload != len(b)-length || s.Result > s.Recv {
				t.Fatalf("%+v has the shape %+v, and buffers of %d and %d bytes", c, s, send, recv)
			}
		}
	}
}

// TestCallFrame checks that a short call is written as a single frame that includes its payload.
func TestCallFrame(t *testing.T) {
	x, _ := described(coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 4, Elem: 4}, "")
	head, payload, more := x.buildFrame(nil, false, wire.ChunkLen)
	if len(head) != wire.FrameHeaderLen+wire.CallLen+16+4 || payload != nil || more {
		t.Errorf("%d bytes with the header, %d separate bytes, more: %v", len(head), len(payload), more)
	}
}

// TestWork checks that no algorithm needs more memory than WorkBytes returns.
func TestWork(t *testing.T) {
	tight := 0
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		for _, a := range coll.Algorithms(of) {
			for _, ranks := range []int{1, 2, 3, 4, 5, 7, 8, 13} {
				for kind := range 1 << 5 {
					c := coll.Call{
						Collective: of, Ranks: ranks, Elem: 2, Bytes: 10 + ranks*2, Flows: true,
						OrderForm: coll.OrderForm(kind >> 3),
						InPlace:   kind&1 != 0, Ordered: kind&2 != 0, Vector: kind&4 != 0,
					}
					if kind&8 != 0 && of <= coll.Scatter && of != coll.Allreduce {
						c.Root = ranks - 1
					}
					for r := range ranks {
						if a.Name == "tree" && r != c.Root {
							c.FPGAs = append(c.FPGAs, r)
						}
					}
					for _, c := range attachtest.CallsByRank(c) {
						c.Send.Offsets, c.Recv.Offsets = nil, nil // as in the daemon
						var s coll.Schedule
						made := c
						if a.Make(&s, &made) != nil {
							continue
						}
						x, _ := described(c, "")
						if uint64(s.Scratch) > x.WorkBytes() {
							t.Fatalf("%s: %+v takes %d bytes, and %d are counted", a.Name, c, s.Scratch, x.WorkBytes())
						}
						if uint64(s.Scratch) == x.WorkBytes() {
							tight++
						}
					}
				}
			}
		}
	}
	if tight < 100 {
		t.Errorf("WorkBytes is exact for only %d calls", tight)
	}
}

// TestWorkOfNonsense checks that claims in a frame cannot cause an overflow.
func TestWorkOfNonsense(t *testing.T) {
	const most = 1<<64 - 1
	for of := range coll.Collective(20) {
		for _, flags := range []uint16{0, wire.FlagVector, wire.FlagOrdered} {
			c := wire.Call{Collective: of, Flags: flags, Ranks: 1<<32 - 1, Bytes: most, Length: most, Result: most}
			if w := c.WorkBytes(); of > coll.Barrier && of <= coll.Exscan && w < 1<<60 &&
				(w != 0 || flags != wire.FlagVector) {
				t.Errorf("%v with flags %d: %d", of, flags, w)
			}
		}
	}
}

func TestPieces(t *testing.T) {
	buf := []byte("0123456789")
	for _, tt := range []struct {
		sizes, offsets []int
		want           string
	}{
		{[]int{2, 3, 1}, nil, "[012345]"},
		{[]int{2, 3, 1}, []int{0, 2, 5}, "[012345]"},
		{[]int{2, 3, 1}, []int{1, 7, 5}, "[12 789 5]"},
		{[]int{2, 0, 1}, []int{4, 99, 6}, "[456]"},
		{[]int{0, 0, 0}, []int{4, 99, 6}, "[]"},
		{[]int{1, 1, 1}, []int{3, 3, 3}, "[3 3 3]"},
	} {
		var p pieces
		p.addBlocks(buf, &coll.Call{Ranks: 3, Vector: true}, &coll.Layout{Sizes: tt.sizes, Offsets: tt.offsets})
		if got := fmt.Sprintf("%s", p.list); got != tt.want {
			t.Errorf("%v at %v are %s, and not %s", tt.sizes, tt.offsets, got, tt.want)
		}
		n := p.bytesLeft
		for p.bytesLeft > 0 {
			n -= len(p.next(2))
		}
		if n != 0 || p.next(2) != nil {
			t.Errorf("%v at %v: %d bytes are left", tt.sizes, tt.offsets, n)
		}
	}
}
