package attach

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// deadline is how long a test may take before it has failed.
const deadline = 60 * time.Second

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// harness is a server of a world's ranks.
type harness struct {
	w      *world
	server *Server
	socket string
	stop   context.CancelFunc
	ended  chan error
}

func serve(t testing.TB, w *world, opts Options) *harness {
	t.Helper()
	h := &harness{w: w, server: NewServer(w, opts), socket: shortPath(t), ended: make(chan error, 1)}
	l, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.ended <- h.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		h.shutDown(t)
		for rank := range w.ranks {
			if n := w.openOps(rank); n != 0 {
				t.Errorf("rank %d: %d operations are left", rank, n)
			}
		}
		for _, rank := range w.hosts { // others' are the test's own
			if n := w.keptOps(rank); n != 0 && !t.Failed() {
				t.Errorf("rank %d: %d operations were not freed", rank, n)
			}
		}
	})
	return h
}

// shortPath is for a socket: t.TempDir has the test's name in it and may be
// longer than the 107 bytes of a socket's path.
func shortPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zat")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "a")
}

// shutDown stops the server, if it runs.
func (h *harness) shutDown(t testing.TB) {
	t.Helper()
	h.stop()
	select {
	case err := <-h.ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
		h.ended <- nil
	case <-time.After(deadline):
		t.Error("the server does not stop")
	}
}

// dialFlags are what the tests' programs say in HELLO.
var dialFlags uint32 = flagRings | flagArena

// TestOverSocket: what is so for programs with rings is so for those without.
func TestOverSocket(t *testing.T) {
	dialFlags = 0
	defer func() { dialFlags = flagRings | flagArena }()
	for name, test := range map[string]func(*testing.T){
		"Allocations": TestAllocations, "CallAllocations": TestCallAllocations,
		"BudgetOfBytes": TestBudgetOfBytes, "BudgetOfOperations": TestBudgetOfOperations, "BudgetOfProbes": TestBudgetOfProbes, "BudgetOfCalls": TestBudgetOfCalls,
		"Deadline": TestDeadline, "ProgramGoes": TestProgramGoes, "NextPrograms": TestNextPrograms, "BuffersOfOthers": TestBuffersOfOthers,
		"Collectives": TestCollectives, "LongCollectives": TestLongCollectives, "SmallPassesLarge": TestSmallPassesLarge,
		"UserFunction": TestUserFunction, "UserFunctionBlocks": TestUserFunctionBlocks, "HostileReduced": TestHostileReduced,
		"HostileCalls": TestHostileCalls, "InvalidCalls": TestInvalidCalls, "HostileFrames": TestHostileFrames, "Tolerated": TestTolerated,
		"Claims": TestClaims, "NotReading": TestNotReading, "LateReader": TestLateReader,
		"PostedReceivesTakeNoMemory": TestPostedReceivesTakeNoMemory, "MemoryOfAllPrograms": TestMemoryOfAllPrograms,
		"EndedSendsHoldNoMemory": TestEndedSendsHoldNoMemory, "KeptMemoryIsReturned": TestKeptMemoryIsReturned,
		"RoundTrips": TestRoundTrips, "Probe": TestProbe, "Pipelining": TestPipelining, "ManyGoroutines": TestManyGoroutines, "Order": TestOrder,
		"Notify": TestNotify, "Cancel": TestCancel, "Abort": TestAbort, "ShutDown": TestShutDown, "Close": TestClose,
		"SendsKeepTheirOrder": TestSendsKeepTheirOrder, "AbortUnstarted": TestAbortUnstarted, "PiecesOfAReceive": TestPiecesOfAReceive, "Bye": TestBye,
	} {
		t.Run(name, test)
	}
}

func (h *harness) dial(t testing.TB, rank int) *Client {
	t.Helper()
	attach := Dial
	if dialFlags == 0 {
		attach = DialSocket
	}
	c, err := attach(within(t), h.socket, rank)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(within(t)) })
	return c
}

// session is that of the program that has a rank. To examine it allocates nothing.
func (h *harness) session(rank int) *session {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return h.server.attached[rank]
}

// until waits for something that another goroutine is about to do.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// noLeak fails if the test leaves goroutines behind. The process's poller, which stays, is
// there before.
func noLeak(t *testing.T) {
	t.Helper()
	polls.Do(func() { startPoller(t) })
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	})
}

var polls sync.Once

func startPoller(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", shortPath(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSocket(conn.(*net.UnixConn), false)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func begin(t testing.TB, d mpe.Device, op mpe.Operation) mpe.Op {
	t.Helper()
	o, err := d.Start(op)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func send(t testing.TB, d mpe.Device, to, tag int, data []byte) mpe.Op {
	t.Helper()
	return begin(t, d, mpe.Operation{Kind: mpe.OpSend, Peer: to, Tag: tag, Buf: data})
}

func recv(t testing.TB, d mpe.Device, from, tag int, buf []byte) mpe.Op {
	t.Helper()
	return begin(t, d, mpe.Operation{Kind: mpe.OpRecv, Peer: from, Tag: tag, Buf: buf, AnyDatatype: true})
}

func wait(t testing.TB, op mpe.Op) mpe.Status {
	t.Helper()
	st, err := op.Wait(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// pattern is data of which no two places look alike.
func pattern(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return b
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: wrong data (%d bytes, want %d)", what, len(got), len(want))
	}
}
