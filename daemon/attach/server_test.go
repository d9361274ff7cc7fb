package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

func TestOneProgramARank(t *testing.T) {
	leaksNothing(t)
	var mu sync.Mutex
	var refusal []string
	h := serve(t, newWorld(5, 1, 3), Options{Log: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		refusal = append(refusal, fmt.Sprintf("%d: rank %d pid %d %v", e.Kind, e.Rank, e.PID, e.Err))
	}})
	dial := func(rank int) (*client.Client, error) { return client.Dial(attachtest.TestContext(t), h.socket, rank) }
	one := h.dial(t, 1)
	pid := fmt.Sprintf("pid %d", os.Getpid())
	if _, err := dial(1); !errors.Is(err, wire.ErrBusy) || !strings.Contains(err.Error(), "rank 1 by "+pid) {
		t.Errorf("a rank that is taken: %v", err)
	}
	three := h.dial(t, wire.AnyRank)
	if three.Rank() != 3 {
		t.Errorf("rank %d", three.Rank())
	}
	if _, err := dial(wire.AnyRank); !errors.Is(err, wire.ErrBusy) || !strings.Contains(err.Error(), "rank 3 by "+pid) {
		t.Errorf("all are taken: %v", err)
	}
	if _, err := dial(2); !errors.Is(err, mpe.ErrRank) || !strings.Contains(err.Error(), "[1 3]") {
		t.Errorf("a rank that is not offered: %v", err)
	}
	list := h.server.AttachedPrograms()
	if len(list) != 2 || list[0].Rank != 1 || list[1].Rank != 3 || list[0].PID != os.Getpid() ||
		list[0].UID != os.Getuid() {
		t.Errorf("%+v", list)
	}
	for range 20 { // the rank is free as soon as Close returns
		if err := one.Close(attachtest.TestContext(t)); err != nil {
			t.Fatal(err)
		}
		var err error
		if one, err = dial(1); err != nil {
			t.Fatal(err)
		}
	}
	one.Close(attachtest.TestContext(t))
	h.shutDown(t)
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"0: rank 1 " + pid + " <nil>", "1: rank 1 " + pid + " detached cleanly",
		"1: rank 3 " + pid + " zrlmpid: the daemon is shutting down",
		"2: rank -1 pid 0 zrlmpid: another program is attached"} {
		if !strings.Contains(strings.Join(refusal, "\n"), want) {
			t.Errorf("the log does not say %q:\n%s", want, strings.Join(refusal, "\n"))
		}
	}
}

func TestNoHosts(t *testing.T) {
	h := serve(t, newWorld(2), Options{})
	if _, err := client.Dial(attachtest.TestContext(t), h.socket, wire.AnyRank); !errors.Is(err, mpe.ErrRank) {
		t.Error(err)
	}
}

func TestNoDaemon(t *testing.T) {
	if _, err := client.Dial(attachtest.TestContext(t), t.TempDir()+"/x", 0); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	errEnough := errors.New("enough")
	cancel(errEnough)
	h := serve(t, newWorld(2, 0), Options{})
	if _, err := client.Dial(ctx, h.socket, 0); !errors.Is(err, context.Canceled) && !errors.Is(err, errEnough) {
		t.Error(err)
	}
}

// TestShutDown checks that operations fail with an error that states the reason when the daemon shuts down.
func TestShutDown(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(2, 0, 1), Options{})
	silent := h.connect(t) // has not sent HELLO yet
	a := h.dial(t, 0)      // attaches after silent has connected
	ops := []mpe.Op{
		attachtest.Recv(t, a, 1, 0, make([]byte, 100)),
		attachtest.StartOp(t, a, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: make([]byte, 3*wire.ChunkLen)}),
	}
	probed := make(chan error)
	go func() {
		_, _, err := a.Probe(attachtest.TestContext(t), mpe.Match{Source: 1, Tag: 3}, true)
		probed <- err
	}()
	attachtest.WaitUntil(t, "all are in progress", func() bool { return h.server.AttachedPrograms()[0].Operations == 3 })
	h.shutDown(t)
	for _, op := range ops {
		if _, err := op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) ||
			!strings.Contains(err.Error(), "the daemon is shutting down") {
			t.Errorf("%v", err)
		}
	}
	if err := <-probed; !errors.Is(err, mpe.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := a.Start(mpe.Operation{Kind: mpe.OpRecv}); !errors.Is(err, mpe.ErrClosed) {
		t.Errorf("after it: %v", err)
	}
	if e := silent.ReadRefusal(); e.Reason != wire.Closing {
		t.Errorf("before HELLO: %v", e)
	}
	if err := a.Close(attachtest.TestContext(t)); err != nil {
		t.Error(err)
	}
}

// TestClose checks that a client that closes ends its operations on both sides.
func TestClose(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(2, 0, 1), Options{})
	a := h.dial(t, 0)
	op := attachtest.Recv(t, a, 1, 0, make([]byte, 100))
	if err := a.Close(attachtest.TestContext(t)); err != nil {
		t.Error(err)
	}
	if _, err := op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) ||
		!strings.Contains(err.Error(), "detached from it") {
		t.Errorf("%v", err)
	}
	if n := h.w.openOps(0); n != 0 {
		t.Errorf("%d operations are left", n)
	}
	if err := a.Close(attachtest.TestContext(t)); err != nil {
		t.Error(err)
	}
}
