package attach

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// harness is a server that offers the ranks of a world.
type harness struct {
	w      *world
	server *Server
	socket string
	stop   context.CancelFunc
	ended  chan error
}

func serve(t testing.TB, w *world, opts Options) *harness {
	t.Helper()
	h := &harness{w: w, server: NewServer(w, opts), socket: attachtest.SocketPath(t), ended: make(chan error, 1)}
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
		for _, rank := range w.hosts { // the other ranks belong to the test
			if n := w.keptOps(rank); n != 0 && !t.Failed() {
				t.Errorf("rank %d: %d operations were not freed", rank, n)
			}
		}
	})
	return h
}

// shutDown stops the server if it is running.
func (h *harness) shutDown(t testing.TB) {
	t.Helper()
	h.stop()
	select {
	case err := <-h.ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
		h.ended <- nil
	case <-time.After(attachtest.Deadline):
		t.Error("the server does not stop")
	}
}

// dialFlags are the flags that the tests' programs send in HELLO.
var dialFlags uint32 = wire.FlagRings | wire.FlagArena

// TestOverSocket runs the tests of programs that use rings once more without rings.
func TestOverSocket(t *testing.T) {
	dialFlags = 0
	defer func() { dialFlags = wire.FlagRings | wire.FlagArena }()
	for name, test := range map[string]func(*testing.T){
		"Allocations": TestAllocations, "CallAllocations": TestCallAllocations,
		"BudgetOfBytes": TestBudgetOfBytes, "BudgetOfOperations": TestBudgetOfOperations,
		"BudgetOfProbes": TestBudgetOfProbes, "BudgetOfCalls": TestBudgetOfCalls,
		"Deadline": TestDeadline, "ProgramEnds": TestProgramEnds, "NextPrograms": TestNextPrograms,
		"BuffersOfOthers": TestBuffersOfOthers,
		"Collectives":     TestCollectives, "LongCollectives": TestLongCollectives,
		"UserFunction": TestUserFunction, "UserFunctionBlocks": TestUserFunctionBlocks,
		"HostileReduced": TestHostileReduced,
		"HostileCalls":   TestHostileCalls, "InvalidCalls": TestInvalidCalls, "HostileFrames": TestHostileFrames,
		"Tolerated": TestTolerated,
		"Claims":    TestClaims, "NotReading": TestNotReading, "LateReader": TestLateReader,
		"PostedReceivesTakeNoMemory": TestPostedReceivesTakeNoMemory, "MemoryOfAllPrograms": TestMemoryOfAllPrograms,
		"EndedSendsHoldNoMemory": TestEndedSendsHoldNoMemory, "KeptMemoryIsReturned": TestKeptMemoryIsReturned,
		"RoundTrips": TestRoundTrips, "Probe": TestProbe, "Pipelining": TestPipelining,
		"ManyGoroutines": TestManyGoroutines, "Order": TestOrder,
		"Notify": TestNotify, "Cancel": TestCancel, "Abort": TestAbort, "ShutDown": TestShutDown, "Close": TestClose,
		"SendsKeepTheirOrder": TestSendsKeepTheirOrder, "AbortUnstarted": TestAbortUnstarted,
		"PiecesOfAReceive": TestPiecesOfAReceive, "ByeCancelsOperations": TestByeCancelsOperations,
	} {
		t.Run(name, test)
	}
}

func (h *harness) dial(t testing.TB, rank int) *client.Client {
	t.Helper()
	attach := client.Dial
	if dialFlags&wire.FlagArena == 0 {
		attach = client.DialSocket
	}
	c, err := attach(attachtest.TestContext(t), h.socket, rank)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(attachtest.TestContext(t)) })
	return c
}

// session returns the session of the program attached to a rank. It does not allocate.
func (h *harness) session(rank int) *session {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return h.server.sessions[rank]
}

func startPoller(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", attachtest.SocketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSocketStream(conn.(*net.UnixConn), false)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// leaksNothing fails the test if goroutines other than the process's poller are still running at its end.
func leaksNothing(t *testing.T) {
	t.Helper()
	serverPolls.Do(func() { startPoller(t) })
	attachtest.CheckGoroutines(t)
}

var serverPolls sync.Once
