package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
)

// TestLibraryShortCalls checks short calls, most of which finish in C, in all orders with other calls.
func TestLibraryShortCalls(t *testing.T) {
	dir := builtLibrary(t)
	for _, abi := range []string{"standard", "mpich"} {
		out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "2",
			compile(t, dir, abi, "short.c", "-O1", "-pthread"))
		if err != nil || sortedLines(out) != "rank 0 of 2: ok\nrank 1 of 2: ok\n" {
			t.Errorf("%s: %v\n%s", abi, err, out)
		}
	}
}

// TestLibraryShortCounts checks that the tools see calls that finish in C: the counters of messages and calls, and a
// rank that waits.
func TestLibraryShortCounts(t *testing.T) {
	dir := builtLibrary(t)
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "zrlctl"), "run", "-n", "2",
		compile(t, dir, "standard", "short.c", "-pthread"), "wait")
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"))
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	for rank, r := range awaitReports(t, pid) {
		calls := uint64(0)
		for _, n := range r.RankCounters.Collectives {
			calls += n.Calls
		}
		peer := r.Peers[slices.IndexFunc(r.Peers, func(p state.PeerCounters) bool { return p.Rank == 1-rank })]
		// In addition to the program's messages, the ranks exchange one to agree on how they make collective calls.
		if peer.Sent != 1001 || peer.Received != 1001 || peer.SentBytes != 4032 || calls != 500 {
			t.Errorf("rank %d counts %d messages of %d bytes sent, %d received, %d calls", rank, peer.Sent, peer.SentBytes,
				peer.Received, calls)
		}
	}
	_, err := io.WriteString(in, "\n")
	if err := errors.Join(err, in.Close(), c.Wait()); err != nil {
		t.Error(err)
	}
}

// awaitReports returns the reports of the job with the given process, once rank 1 waits for a message.
func awaitReports(t *testing.T, pid int) []node.Report {
	t.Helper()
	for t.Context().Err() == nil {
		list, err := control.JobMetrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range list {
			if len(j.Reports) == 2 && j.Reports[0].PID == pid && j.Reports[1].RankCounters.Posted == 1 {
				return j.Reports
			}
		}
	}
	t.Fatal("rank 1 does not wait")
	return nil
}
