package attach

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// FuzzClient checks that operations end and buffers stay intact, no matter what a daemon sends.
func FuzzClient(f *testing.F) {
	const id, call = 1 << 32, 1<<32 | 1
	f.Add(attachtest.DoneFrame(wire.Done{ID: id, Stored: 8}, "12345678"))
	f.Add(attachtest.DoneFrame(wire.Done{ID: call, Stored: 8}, "12345678"))
	f.Add(append(attachtest.DataFrame(call, []byte("12345")),
		attachtest.DoneFrame(wire.Done{ID: call, Stored: 8}, "678")...))
	f.Add(attachtest.DoneFrame(wire.Done{ID: call, Err: &collective.StepError{Err: &mpe.WaitError{}}}, ""))
	f.Add(append(attachtest.DataFrame(id, []byte("1234")),
		attachtest.DoneFrame(wire.Done{ID: id, Stored: 8, Err: &handshake.TimeoutError{}}, "5678")...))
	f.Add(attachtest.DoneFrame(wire.Done{ID: id, Err: &mpe.WaitError{}}, ""))
	f.Add(attachtest.DoneFrame(wire.Done{ID: 1<<32 | 2, Found: true, Stored: 7}, ""))
	f.Add(attachtest.DoneFrame(wire.Done{ID: 1<<32 | 2, Found: true, Stored: 1 << 31}, ""))
	f.Add(wire.RefusedFrame(wire.NewRefusal(wire.Closing, "x")))
	f.Add(wire.AppendHeader(nil, wire.FrameBye, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, daemon := fakeDaemon(t)
		guarded := bytes.Repeat([]byte{0xee}, 24)
		op := attachtest.Recv(t, c, 1, 0, guarded[8:16])
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
		go io.Copy(io.Discard, daemon.Conn)
		daemon.Conn.Write(b)
		daemon.Conn.Close()
		op.Await(attachtest.TestContext(t))
		gather.Await(attachtest.TestContext(t))
		<-probed
		for i, at := range gaps {
			if in := i >= 4 && i < 8 || i >= 16 && i < 20; !in && at != 0xee {
				t.Errorf("byte %d between blocks was written: %x", i, gaps)
			}
		}
		if !bytes.Equal(guarded[:8], bytes.Repeat([]byte{0xee}, 8)) || !bytes.Equal(guarded[16:], guarded[:8]) {
			t.Errorf("bytes outside the buffer were written: %x", guarded)
		}
		c.Close(attachtest.TestContext(t))
	})
}
