package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// FuzzServer: whatever a program sends, it is disconnected in the end, and
// nothing of it is left.
func FuzzServer(f *testing.F) {
	join := func(frames ...[]byte) []byte { return bytes.Join(frames, nil) }
	f.Add(join(startFrame(recvStart(1, 4), nil), startFrame(sendStart(2, 4), []byte("abcd")), cancelFrame(1)))
	f.Add(join(startFrame(sendStart(2, 8), []byte("abcd")), dataFrame(2, []byte("efgh")), appendHeader(nil, frameBye, 0)))
	f.Add(join(appendProbe(nil, &probe{id: 3, Match: mpe.Match{Source: 1}, wait: true}), abortFrame(3, io.EOF)))
	f.Add(join(startFrame(sendStart(2, 4), []byte("abcd")), appendProbe(nil, &probe{id: 3, Match: mpe.Match{Source: -1, Tag: -1, Claim: true}}), appendProbe(nil, &probe{id: 4, Match: mpe.Match{Claim: true}, wait: true}),
		startFrame(start{id: 5, Operation: mpe.Operation{Kind: mpe.OpRecv, Tag: 1, Comm: mpe.ClaimComm}, length: 4}, nil), cancelFrame(4)))
	f.Add(join(startFrame(sendStart(2, 8), nil), abortFrame(2, context.Canceled), dataFrame(2, []byte("x"))))
	f.Add(join(callFrame(barrier(1), ""), callFrame(reduce(2), "ab"), dataFrame(2, []byte("cd")), cancelFrame(1), abortFrame(2, io.EOF)))
	for _, c := range []coll.Call{
		{Collective: coll.Bcast, Bytes: 40}, {Collective: coll.Reduce, Bytes: 4, Elem: 4}, {Collective: coll.Exscan, Bytes: 4, Elem: 4, InPlace: true},
		{Collective: coll.Gather, Vector: true}, {Collective: coll.Scatter, Vector: true}, {Collective: coll.Alltoall, Vector: true},
		{Collective: coll.Allgather, Vector: true, InPlace: true}, {Collective: coll.ReduceScatter, Vector: true, Elem: 4},
	} {
		c.Ranks = 2
		for _, name := range []string{"", "flat", "ring"} {
			m := &collective.Operation{Call: callsOf(c)[0], Members: []int{0, 1}, Comm: 1, Tag: 1, Op: op.Sum, Type: op.Int32, Algorithm: name}
			send, recv := collcheck.Buffers(&m.Call)
			m.Send, m.Recv = make([]byte, send), make([]byte, recv)
			var x collectiveOp
			x.begin(5, m, len(name)) // listed, or not
			f.Add(written(&x, 64))
		}
	}
	h := serve(f, newWorld(2, 0), Options{Limits: Limits{Operations: 16, Bytes: 1 << 20}})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := h.attach(t, 0)
		go func() {
			_, _ = c.conn.Write(b) // the daemon may close the connection
			c.conn.CloseWrite()
		}()
		for {
			err := c.in.next()
			if err == nil {
				err = c.in.skip()
			}
			if _, broken := errors.AsType[*protocolError](err); broken {
				t.Fatalf("the daemon's answer cannot be read: %v", err)
			}
			if err != nil {
				break
			}
		}
		until(t, "the program has detached", func() bool { return len(h.server.Attached()) == 0 })
		if n := h.w.openOps(0); n > 0 {
			t.Errorf("%d operations are left", n)
		}
		h.w.mu.Lock()
		h.w.ranks[0].sent, h.w.ranks[1].sent = nil, nil
		h.w.mu.Unlock()
	})
}

// FuzzEngine: whatever calls a program makes of a real rank, it ends, and so do they.
func FuzzEngine(f *testing.F) {
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		for _, flags := range []uint16{0, flagInPlace, flagVector, flagInPlace | flagVector | flagListed} {
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
	h := serveDevices(f, devices, Options{Limits: Limits{Operations: 16, Bytes: 1 << 16}})
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		at := func(i int) uint64 {
			if i < len(b) {
				return uint64(b[i])
			}
			return 0
		}
		name = name[:min(len(name), maxName)]
		c := call{
			id: 1, collective: coll.Collective(at(0) % 13), flags: uint16(at(1)) & callFlags, comm: uint32(at(2)), tag: int32(at(3)),
			ranks: uint32(at(4) % 5), rank: uint32(at(5) % 5), root: uint32(at(6) % 5), op: op.Op(at(7) % 14), typ: op.Type(at(8) % 19),
			name: uint8(len(name)), elem: uint32(at(9) % 9), bytes: at(10), segment: at(11), result: at(12),
		}
		x, members := c.asked(), make([]int, c.ranks)
		for i := range members {
			members[i] = int(at(20 + i))
			for j, l := range layouts(&x) {
				if l != nil {
					l.Sizes = append(l.Sizes, int(at(30+10*j+i)))
				}
			}
		}
		follows := c.appendDescription(nil, &x, members, name)
		if x.Check() == nil {
			s := shapeOf(&x)
			c.result, follows = uint64(s.result), append(follows, make([]byte, s.payload)...)
		}
		c.length = uint64(len(follows))
		p := h.attach(t, 0)
		p.write(callFrame(c, string(follows)))
		p.write(abortFrame(1, io.EOF))
		if d := p.done(); d.id != 1 {
			t.Errorf("%+v", d)
		}
		p.conn.Close()
		until(t, "the program has detached", func() bool { return len(h.server.Attached()) == 0 })
		if list := calls(devices[0]); len(list) > 0 {
			t.Errorf("under way: %+v", list)
		}
	})
}

// FuzzClient: whatever a daemon sends, operations end and buffers stay whole.
func FuzzClient(f *testing.F) {
	const id, call = 1 << 32, 1<<32 | 1
	f.Add(doneFrame(done{id: id, stored: 8}, "12345678"))
	f.Add(doneFrame(done{id: call, stored: 8}, "12345678"))
	f.Add(append(dataFrame(call, []byte("12345")), doneFrame(done{id: call, stored: 8}, "678")...))
	f.Add(doneFrame(done{id: call, err: &collective.StepError{Err: &mpe.WaitError{}}}, ""))
	f.Add(append(dataFrame(id, []byte("1234")), doneFrame(done{id: id, stored: 8, err: &handshake.TimeoutError{}}, "5678")...))
	f.Add(doneFrame(done{id: id, err: &mpe.WaitError{}}, ""))
	f.Add(doneFrame(done{id: 1<<32 | 2, found: true, stored: 7}, ""))
	f.Add(doneFrame(done{id: 1<<32 | 2, found: true, stored: 1 << 31}, ""))
	f.Add(refusedFrame(refused(Closing, "x")))
	f.Add(appendHeader(nil, frameBye, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, daemon := fakeDaemon(t)
		guarded := bytes.Repeat([]byte{0xee}, 24)
		op := recv(t, c, 1, 0, guarded[8:16])
		gaps := bytes.Repeat([]byte{0xee}, 24)
		layout := coll.Layout{Sizes: []int{4, 4}, Offsets: []int{16, 4}}
		gather, err := c.StartCollective(&collective.Operation{
			Call:    coll.Call{Collective: coll.Allgather, Ranks: 2, Vector: true, InPlace: true, Recv: layout},
			Members: []int{0, 1}, Comm: 1, Tag: 1, Recv: gaps,
		})
		if err != nil {
			t.Fatal(err)
		}
		probed := make(chan struct{})
		go func() {
			defer close(probed)
			c.Probe(context.Background(), mpe.Match{Claim: true}, false)
		}()
		go io.Copy(io.Discard, daemon.conn)
		daemon.conn.Write(b)
		daemon.conn.Close()
		op.Wait(within(t))
		gather.Wait(within(t))
		<-probed
		for i, at := range gaps {
			if in := i >= 4 && i < 8 || i >= 16 && i < 20; !in && at != 0xee {
				t.Errorf("byte %d between blocks was written: %x", i, gaps)
			}
		}
		if !bytes.Equal(guarded[:8], bytes.Repeat([]byte{0xee}, 8)) || !bytes.Equal(guarded[16:], guarded[:8]) {
			t.Errorf("bytes beside the buffer were written: %x", guarded)
		}
		c.Close(within(t))
	})
}

// FuzzHello: the first frame of a program, and of what is none.
func FuzzHello(f *testing.F) {
	f.Add(helloFrame(hello{version: Version, rank: AnyRank}))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := newFrameReader(bytes.NewReader(b)).readHello()
		if err == nil && !bytes.HasPrefix(b[frameHeaderLen:], []byte(magic)) {
			t.Errorf("%x is %+v", b, h)
		}
	})
}
