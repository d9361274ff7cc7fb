package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
)

// jobOfTwo starts a job of two ranks. It returns the ranks, and a function that finds the job.
func jobOfTwo(ctx context.Context, t *testing.T, name, transport string) (job func() *Job, devices []mpe.Device) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "job.yaml")
	text := fmt.Sprintf(`
defaults: {profile: extended, transport: %[2]s}
ranks:
  - {rank: 0, address: %[1]s1, run: host}
  - {rank: 1, address: %[1]s2, run: host}
`, loopback.Network(t), transport)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLauncher(fmt.Sprintf("%s_%d", name, os.Getpid()))
	devices = make([]mpe.Device, 2)
	errs := make([]error, 2)
	var joined sync.WaitGroup
	for i := range devices {
		joined.Go(func() { devices[i], errs[i] = node.Join(ctx, process{l, i}, config) })
	}
	joined.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return func() *Job {
		list, err := Jobs(ctx, l.name)
		if err != nil || len(list) != 1 || len(list[0].Reports) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}, devices
}

// exchangeOne sends a message from rank 0 to rank 1.
func exchangeOne(ctx context.Context, t *testing.T, devices []mpe.Device) {
	t.Helper()
	out, err1 := devices[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 100)})
	in, err2 := devices[1].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 100)})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	_, err1 = out.Await(ctx)
	_, err2 = in.Await(ctx)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
}

// TestJobPackets checks that the packets of a job are the packets that its ranks recorded, each once and in
// chronological order. Followed packets are accompanied by queue lengths until the reader or the job ends.
func TestJobPackets(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	job, devices := jobOfTwo(ctx, t, "packets", "udp")
	exchangeOne(ctx, t, devices)
	src, err := job().Packets(ctx, CaptureRequest{})
	if err != nil {
		t.Fatal(err)
	}
	a := capture.NewAnalysis("job", capture.AnalysisOptions{})
	if err := a.Analyze(src); err != nil {
		t.Fatal(err)
	}
	src.Close()
	r := a.Report()
	interrupted, interrupt := context.WithCancelCause(ctx)
	interrupt(io.ErrUnexpectedEOF)
	cut, err := job().Packets(interrupted, CaptureRequest{})
	for u := (pcapng.Unit{}); err == nil; {
		err = cut.Next(&u)
	}
	if errors.Is(err, io.EOF) {
		t.Error("a request that was interrupted has all packets")
	}
	if x := r.Summary.Extended; len(x) != 2 || x[0].Complete != 1 ||
		x[0].Duplicates+x[1].Duplicates+x[0].OutOfOrder != 0 || len(r.Findings) > 0 {
		t.Errorf("%+v, %+v", x, r.Findings)
	}

	ranks := map[int]bool{}
	follow, err := job().Packets(ctx, CaptureRequest{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Close()
	calls := map[int]pcapng.Call{}
	follow.OnNote = func(n pcapng.RankNote) {
		switch n := n.(type) {
		case *pcapng.QueueDepths:
			ranks[n.Rank] = true
		case *pcapng.Call:
			calls[n.Rank] = *n
		}
	}
	exchangeOne(ctx, t, devices)
	var u pcapng.Unit
	if err := follow.Next(&u); err != nil || u.Packet != 1 {
		t.Fatal(u.Packet, err)
	}
	if err := errors.Join(devices[0].Close(ctx), devices[1].Close(ctx)); err != nil {
		t.Fatal(err)
	}
	follow.stop()
	last := u.Time
	for err = follow.Next(&u); err == nil; err = follow.Next(&u) {
		if u.Time.Before(last) {
			t.Errorf("a packet of %v after one of %v", u.Time, last)
		}
		last = u.Time
	}
	for rank, want := range []string{"Send to rank 1, 100 bytes, communicator 0",
		"Receive from rank 0, 100 bytes, communicator 0"} {
		if c := calls[rank]; c.String() != want || c.State != pcapng.CallCompleted {
			t.Errorf("rank %d: the last call that ended is %+v, want %s", rank, c, want)
		}
	}
	if !errors.Is(err, io.EOF) || follow.Stats().End.IsZero() || !ranks[0] || !ranks[1] {
		t.Errorf("%v, %+v, queues of %v", err, follow.Stats(), ranks)
	}
}

// TestJobWithoutPackets checks that a job records no packets if its messages are sent through shared memory.
func TestJobWithoutPackets(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	job, devices := jobOfTwo(ctx, t, "nopackets", "shm")
	exchangeOne(ctx, t, devices)
	if _, err := job().Packets(ctx, CaptureRequest{}); err == nil ||
		!strings.Contains(err.Error(), "record no packets") {
		t.Error(err)
	}
	if err := errors.Join(devices[0].Close(ctx), devices[1].Close(ctx)); err != nil {
		t.Fatal(err)
	}
}
