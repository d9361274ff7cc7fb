package attachtest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Deadline is the maximum duration of a test.
const Deadline = 60 * time.Second

func TestContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	t.Cleanup(cancel)
	return ctx
}

// SocketPath returns a short path for a socket. A path in t.TempDir would contain the name of the test and might exceed
// the maximum of 107 bytes.
func SocketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zat")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "a")
}

// WaitUntil waits until ok returns true.
func WaitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Deadline); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func StartOp(t testing.TB, d mpe.Device, op mpe.Operation) mpe.Op {
	t.Helper()
	o, err := d.Start(op)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func Send(t testing.TB, d mpe.Device, to, tag int, data []byte) mpe.Op {
	t.Helper()
	return StartOp(t, d, mpe.Operation{Kind: mpe.OpSend, Peer: to, Tag: tag, Buf: data})
}

func Recv(t testing.TB, d mpe.Device, from, tag int, buf []byte) mpe.Op {
	t.Helper()
	return StartOp(t, d, mpe.Operation{Kind: mpe.OpRecv, Peer: from, Tag: tag, Buf: buf, AnyDatatype: true})
}

func Wait(t testing.TB, op mpe.Op) mpe.Status {
	t.Helper()
	st, err := op.Await(TestContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return *st
}

// Pattern returns pseudo-random data.
func Pattern(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

func CheckEqual(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: wrong data (%d bytes, want %d)", what, len(got), len(want))
	}
}

// RawClient is a program that can send arbitrary bytes to a daemon, including invalid frames.
type RawClient struct {
	T    testing.TB
	Conn RawConn
	In   *wire.Reader
}

// RawConn is the connection of a RawClient: a socket, optionally with rings in shared memory.
type RawConn interface {
	net.Conn
	CloseWrite() error
}

func (c *RawClient) Write(b []byte) {
	c.T.Helper()
	if _, err := c.Conn.Write(b); err != nil {
		c.T.Fatal(err)
	}
}

func (c *RawClient) Expect(frameType wire.FrameType) {
	c.T.Helper()
	if err := c.In.Next(); err != nil {
		c.T.Fatalf("%v instead of %v", err, frameType)
	}
	if c.In.Type != frameType {
		c.T.Fatalf("%v instead of %v", c.In.Type, frameType)
	}
}

// ReadDone reads a DONE frame that has no payload.
func (c *RawClient) ReadDone() wire.Done {
	c.T.Helper()
	c.Expect(wire.FrameDone)
	var d wire.Done
	if err := c.In.ReadDone(&d); err != nil {
		c.T.Fatal(err)
	}
	return d
}

// ReadRefusal reads a REFUSED frame and then the end of the connection. It skips any frames before REFUSED.
func (c *RawClient) ReadRefusal() *wire.RefusedError {
	c.T.Helper()
	for {
		if err := c.In.Next(); err != nil {
			c.T.Errorf("%v instead of REFUSED", err)
			return &wire.RefusedError{}
		}
		if c.In.Type != wire.FrameRefused {
			if err := c.In.Skip(); err != nil {
				c.T.Fatal(err)
			}
			continue
		}
		refusal, ok := errors.AsType[*wire.RefusedError](c.In.ReadRefused())
		if !ok {
			c.T.Fatal("REFUSED cannot be read")
		}
		if err := c.In.Next(); err == nil {
			c.T.Errorf("%v after REFUSED", c.In.Type)
		}
		return refusal
	}
}

func StartFrame(s wire.Start, payload []byte) []byte {
	return append(wire.AppendStart(nil, &s, len(payload)), payload...)
}

func DataFrame(id uint64, payload []byte) []byte {
	return append(wire.AppendID(nil, wire.FrameData, id, len(payload)), payload...)
}

func SendStart(id uint64, length int) wire.Start {
	return wire.Start{ID: id, Operation: mpe.Operation{Kind: mpe.OpSend, Peer: 1}, Length: uint64(length)}
}

func RecvStart(id uint64, length int) wire.Start {
	return wire.Start{ID: id, Operation: mpe.Operation{Kind: mpe.OpRecv, Peer: 1}, Length: uint64(length)}
}

func DoneFrame(d wire.Done, payload string) []byte {
	return append(wire.AppendDone(nil, &d, len(payload)), payload...)
}

// InArenaAt returns a copy of s whose payload is in the arena at the given offset.
func InArenaAt(s wire.Start, at uint64) wire.Start {
	s.InArena, s.ArenaOffset = true, at
	return s
}

// CallsByRank returns the call that each rank makes. If the call has layouts, their blocks differ in length, are in
// reverse order, and have gaps between them.
func CallsByRank(call coll.Call) []coll.Call {
	calls := make([]coll.Call, call.Ranks)
	size := func(i, j int) int { return (i*7 + j*3) % 5 * call.Elem } // length of the block from i to j
	layout := func(of func(i int) int) (layout coll.Layout) {
		at := call.Elem
		for i := range call.Ranks {
			layout.Sizes, layout.Offsets = append(layout.Sizes, of(i)), append(layout.Offsets, 0)
		}
		for i := call.Ranks - 1; i >= 0; i-- {
			layout.Offsets[i] = at
			at += layout.Sizes[i] + i%2*call.Elem
		}
		return layout
	}
	for r := range calls {
		x := call
		x.Rank = r
		if call.Vector {
			all := layout(func(i int) int { return size(i, i) })
			switch call.Collective {
			case coll.Gather, coll.Scatter:
				x.Bytes = all.Sizes[r]
				if r == call.Root {
					x.Send, x.Recv = all, all
				}
			case coll.Allgather:
				x.Recv = all
			case coll.ReduceScatter:
				x.Recv.Sizes = all.Sizes
			case coll.Alltoall:
				x.Recv = layout(func(i int) int { return size(min(i, r), max(i, r)) })
				x.Send = layout(func(i int) int { return size(min(i, r), max(i, r)) })
				if r%2 == 0 {
					x.Send.Offsets = nil
				}
			}
		}
		calls[r] = x
	}
	return calls
}

// AllCalls returns calls of every collective operation, in every variant that the given number of ranks can execute.
func AllCalls(ranks int, sizes []int) (list [][]coll.Call) {
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		rooted := of == coll.Bcast || of == coll.Reduce || of == coll.Gather || of == coll.Scatter
		blocks := of == coll.Gather || of == coll.Scatter || of == coll.Allgather || of == coll.Alltoall ||
			of == coll.ReduceScatter
		for root := range ranks {
			for kind := range 4 {
				call := coll.Call{Collective: of, Ranks: ranks, Root: root, Elem: 2, InPlace: kind&1 != 0,
					Vector: kind&2 != 0}
				if root > 0 && !rooted || of == coll.Barrier && kind > 0 || of == coll.Bcast && call.InPlace ||
					call.Vector && !blocks {
					continue
				}
				for i, n := range sizes {
					if call.Bytes = n; i == 0 || !call.Vector {
						list = append(list, CallsByRank(call))
					}
				}
			}
		}
	}
	return list
}

// CheckGoroutines fails the test if goroutines are still running at its end.
func CheckGoroutines(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		WaitUntil(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	})
}
