package mpe_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestAskReports checks that each rank of the extended profile answers at once with its own report, and makes only
// one report, however many ranks ask.
func TestAskReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made [4]atomic.Int32
		c := newExtendedWith(t, 4, nil, func(cfg *mpe.Config) {
			if rank := cfg.Rank; rank != 3 {
				cfg.MakeReport = func() []byte {
					made[rank].Add(1)
					time.Sleep(time.Millisecond)
					return fmt.Appendf(nil, "rank %d", rank)
				}
			}
		})
		defer c.close()
		ask := func(rank int, want ...string) {
			t.Helper()
			var ranks []int
			for other := range c.engines {
				if other != rank {
					ranks = append(ranks, other)
				}
			}
			got, err := c.engines[rank].AskReports(t.Context(), ranks)
			if err != nil || len(got) != len(ranks) {
				t.Fatalf("rank %d: %v, %v", rank, got, err)
			}
			for i, r := range got {
				if r.Rank != ranks[i] || string(r.Report) != want[i] || (r.Err != nil) != (want[i] == "") ||
					r.Err != nil && !errors.Is(r.Err, mpe.ErrNoReport) {
					t.Errorf("rank %d: rank %d: %q, %v; want %q", rank, r.Rank, r.Report, r.Err, want[i])
				}
			}
		}
		before := time.Now()
		done := make(chan bool)
		for rank := range 2 {
			go func() {
				ask(rank, fmt.Sprintf("rank %d", 1-rank), "rank 2", "")
				done <- true
			}()
		}
		<-done
		<-done
		if passed := time.Since(before); passed > time.Second {
			t.Errorf("it has taken %v", passed)
		}
		if n := made[2].Load(); n != 1 {
			t.Errorf("rank 2 has made %d reports for two ranks", n)
		}
		time.Sleep(time.Second)
		ask(3, "rank 0", "rank 1", "rank 2")
		if n := made[2].Load(); n != 2 {
			t.Errorf("rank 2 has made %d reports", n)
		}
	})
}

// TestAskReportsEnds checks that AskReports ends with its context and with its engine, and refuses invalid ranks.
func TestAskReportsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		defer c.close()
		e := c.engines[0]
		for _, ranks := range [][]int{{0}, {3}, {-1}, {1, 1}, {2, 1}} {
			if _, err := e.AskReports(t.Context(), ranks); !errors.Is(err, mpe.ErrRank) {
				t.Errorf("%v: %v", ranks, err)
			}
		}
		if got, err := e.AskReports(t.Context(), nil); len(got) != 0 || err != nil {
			t.Errorf("nobody: %v, %v", got, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the tool is gone")
		time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
		before := time.Now()
		if _, err := e.AskReports(ctx, []int{1, 2}); !errors.Is(err, cause) ||
			time.Since(before) != 10*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(before), err)
		}
		time.AfterFunc(10*time.Millisecond, func() { e.Close(t.Context()) })
		if got, err := e.AskReports(t.Context(), []int{1, 2}); err != nil || !errors.Is(got[1].Err, mpe.ErrNoReport) {
			t.Errorf("closed meanwhile: %v, %v", got, err)
		}
		if got, err := e.AskReports(t.Context(), []int{1, 2}); err != nil || !errors.Is(got[1].Err, mpe.ErrClosed) {
			t.Errorf("closed: %v, %v", got, err)
		}
	})
}

// TestNoQuestionsToOtherProfiles checks that a peer of the profiles cloudfpga and v0.9, such as every FPGA,
// gets no packet of a question.
func TestNoQuestionsToOtherProfiles(t *testing.T) {
	for name, rules := range map[string]handshake.PeerRules{"fpga": handshake.FPGAPeer(1), "cpu": handshake.CPUPeer(),
		"software": handshake.SoftwarePeer()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, rules, nil)
				defer c.close()
				packets := 0
				c.net.SetHook(func(int, int, []byte) []time.Duration { packets++; return []time.Duration{0} })
				got, err := c.engines[0].AskReports(t.Context(), []int{1, 2})
				time.Sleep(time.Minute)
				synctest.Wait()
				if err != nil || len(got) != 2 || !errors.Is(got[0].Err, mpe.ErrNotExtended) ||
					!errors.Is(got[1].Err, mpe.ErrNotExtended) || packets != 0 {
					t.Errorf("%v, %v, %d packets", got, err, packets)
				}
			})
		})
	}
}
