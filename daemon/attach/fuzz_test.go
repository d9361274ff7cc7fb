package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// FuzzServer checks that every program is eventually disconnected, no matter what it sends, and that nothing of
// it is left behind.
func FuzzServer(f *testing.F) {
	join := func(frames ...[]byte) []byte { return bytes.Join(frames, nil) }
	f.Add(join(attachtest.StartFrame(attachtest.RecvStart(1, 4), nil),
		attachtest.StartFrame(attachtest.SendStart(2, 4), []byte("abcd")), wire.AppendID(nil, wire.FrameCancel, 1, 0)))
	f.Add(join(attachtest.StartFrame(attachtest.SendStart(2, 8), []byte("abcd")),
		attachtest.DataFrame(2, []byte("efgh")), wire.AppendHeader(nil, wire.FrameBye, 0)))
	f.Add(join(wire.AppendProbe(nil, &wire.Start{ID: 3, Operation: mpe.Operation{Peer: 1}, Wait: true}),
		wire.AbortFrame(3, io.EOF)))
	f.Add(join(attachtest.StartFrame(attachtest.SendStart(2, 4), []byte("abcd")),
		wire.AppendProbe(nil, &wire.Start{ID: 3, Operation: mpe.Operation{Peer: -1, Tag: -1}, Claim: true}),
		wire.AppendProbe(nil, &wire.Start{ID: 4, Claim: true, Wait: true}),
		attachtest.StartFrame(wire.Start{ID: 5, Operation: mpe.Operation{Kind: mpe.OpRecv, Tag: 1, Comm: mpe.ClaimComm},
			Length: 4}, nil), wire.AppendID(nil, wire.FrameCancel, 4, 0)))
	f.Add(join(attachtest.StartFrame(attachtest.SendStart(2, 8), nil), wire.AbortFrame(2, context.Canceled),
		attachtest.DataFrame(2, []byte("x"))))
	f.Add(join(callFrame(barrier(1), ""), callFrame(reduce(2), "ab"), attachtest.DataFrame(2, []byte("cd")),
		wire.AppendID(nil, wire.FrameCancel, 1, 0), wire.AbortFrame(2, io.EOF)))
	for _, c := range []coll.Call{
		{Collective: coll.Bcast, Bytes: 40}, {Collective: coll.Reduce, Bytes: 4, Elem: 4},
		{Collective: coll.Exscan, Bytes: 4, Elem: 4, InPlace: true},
		{Collective: coll.Gather, Vector: true}, {Collective: coll.Scatter, Vector: true},
		{Collective: coll.Alltoall, Vector: true},
		{Collective: coll.Allgather, Vector: true, InPlace: true},
		{Collective: coll.ReduceScatter, Vector: true, Elem: 4},
	} {
		c.Ranks = 2
		for _, name := range []string{"", "flat", "ring"} {
			m := &collective.Operation{Call: attachtest.CallsByRank(c)[0], Members: []int{0, 1}, Comm: 1, Tag: 1,
				Op: op.Sum, Type: op.Int32, Algorithm: name}
			var x wire.Call
			text, sh := x.Describe(5, m, len(name), nil) // listed, or not
			f.Add(callFrame(x, string(text)+string(make([]byte, sh.Payload))))
		}
	}
	h := serve(f, newWorld(2, 0), Options{Limits: wire.Limits{Operations: 16, Bytes: 1 << 20}})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := h.attach(t, 0)
		go func() {
			_, _ = c.Conn.Write(b) // the daemon may close the connection
			c.Conn.CloseWrite()
		}()
		for {
			err := c.In.Next()
			if err == nil {
				err = c.In.Skip()
			}
			if _, broken := errors.AsType[*wire.ProtocolError](err); broken {
				t.Fatalf("the daemon's answer cannot be read: %v", err)
			}
			if err != nil {
				break
			}
		}
		attachtest.WaitUntil(t, "the program has detached", func() bool { return len(h.server.AttachedPrograms()) == 0 })
		if n := h.w.openOps(0); n > 0 {
			t.Errorf("%d operations are left", n)
		}
		h.w.mu.Lock()
		h.w.ranks[0].sent, h.w.ranks[1].sent = nil, nil
		h.w.mu.Unlock()
	})
}

// FuzzEngine checks that a program and its calls end, no matter which calls it makes on a real rank.
func FuzzEngine(f *testing.F) {
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		for _, flags := range []uint16{0, wire.FlagInPlace, wire.FlagVector,
			wire.FlagInPlace | wire.FlagVector | wire.FlagListed} {
			b := make([]byte, 60)
			copy(b, []byte{byte(of), byte(flags), 1, 1, 3, 0, 0, byte(op.Sum), byte(op.Int32), 4, 40})
			copy(b[20:], []byte{0, 2, 1})
			copy(b[30:], []byte{4, 0, 8})
			copy(b[40:], []byte{4, 12, 8})
			f.Add(b, "")
			f.Add(b, coll.Algorithms(of)[len(coll.Algorithms(of))-1].Name)
		}
	}
	devices := engines(f, 3, nil)
	h := serveDevices(f, devices, Options{Limits: wire.Limits{Operations: 16, Bytes: 1 << 16}})
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		at := func(i int) uint64 {
			if i < len(b) {
				return uint64(b[i])
			}
			return 0
		}
		name = name[:min(len(name), 255)]
		c := wire.Call{
			ID: 1, Collective: coll.Collective(at(0) % 13), Flags: uint16(at(1)) & (wire.FlagUser<<1 - 1),
			Comm: uint32(at(2)), Tag: int32(at(3)),
			Ranks: uint32(at(4) % 5), Rank: uint32(at(5) % 5), Root: uint32(at(6) % 5), Op: op.Op(at(7) % 14),
			Type: op.Type(at(8) % 19),
			Name: uint8(len(name)), Elem: uint32(at(9) % 9), Bytes: at(10), Segment: at(11), Result: at(12),
		}
		x, members := c.CollCall(), make([]int, c.Ranks)
		for i := range members {
			members[i] = int(at(20 + i))
			for j, l := range []*coll.Layout{&x.Recv, &x.Send} {
				l.Sizes = append(l.Sizes, int(at(30+10*j+i)))
			}
		}
		follows := c.AppendDescription(nil, &x, members, name)
		if x.Check() == nil {
			s := wire.ShapeOf(&x)
			c.Result, follows = uint64(s.Result), append(follows, make([]byte, s.Payload)...)
		}
		c.Length = uint64(len(follows))
		p := h.attach(t, 0)
		p.Write(callFrame(c, string(follows)))
		p.Write(wire.AbortFrame(1, io.EOF))
		if d := p.ReadDone(); d.ID != 1 {
			t.Errorf("%+v", d)
		}
		p.Conn.Close()
		attachtest.WaitUntil(t, "the program has detached", func() bool { return len(h.server.AttachedPrograms()) == 0 })
		if list := calls(devices[0]); len(list) > 0 {
			t.Errorf("in progress: %+v", list)
		}
	})
}
