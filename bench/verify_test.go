package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// worlds opens both ranks in this process.
func worlds(t *testing.T) [2]*mpi.Comm {
	t.Helper()
	config := filepath.Join(t.TempDir(), "c.yaml")
	if err := extendedUDP.configure(config); err != nil {
		t.Fatal(err)
	}
	var all [2]*mpi.Comm
	for rank := range all {
		dev, err := node.OpenFile(config, rank)
		if err != nil {
			t.Fatal(err)
		}
		if all[rank], err = mpi.New(dev); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// The other rank may be gone: what it has not acknowledged is lost.
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			_ = all[rank].Finalize(ctx)
		})
	}
	return all
}

// TestLies: a message that is not what was sent ends the measurement, at either
// end.
func TestLies(t *testing.T) {
	steps := []step{{2, 1}}
	for _, x := range []struct {
		name string
		run  func(context.Context, *mpi.Comm, []step, io.Writer) error
		rank int // which is measured; the other one lies
		step step
		lie  func(p *pair) error
		says string
	}{
		{"pong", runQueues, 0, steps[0], func(p *pair) error {
			if err := p.send(0, tagControl); err != nil {
				return err
			}
			return p.send(7, tagPong)
		}, "depth 2: a pong holds 7 instead of 19"},
		{"ping", runQueues, 1, steps[0], func(p *pair) error {
			return p.send(7, tagPing)
		}, "depth 2: a ping holds 7 instead of -20"},
		{"posted", runQueues, 1, steps[0], func(p *pair) error {
			for i := -warmup; i < 1; i++ {
				if err := p.send(int32(i), tagPing); err != nil {
					return err
				}
			}
			if err := p.send(1, tagPosted+1); err != nil {
				return err
			}
			return p.send(9, tagPosted)
		}, "depth 2: a posted receive holds 9 instead of 0"},
		{"number", runPingPong, 0, step{4, 1}, func(p *pair) error {
			return p.send(7, 0)
		}, "4 bytes: round -20: word 0 is 7 instead of 19"},
		{"last word", runPingPong, 0, step{12, 1}, func(p *pair) error {
			return mpi.Send(p.ctx, p.comm, []int32{19, pattern(1, 1), 7}, 0, 0)
		}, "12 bytes: round -20: word 2 is 7 instead of 19"},
		{"middle", runPingPong, 1, step{12, 1}, func(p *pair) error {
			return mpi.Send(p.ctx, p.comm, []int32{-20, pattern(1, 1), -20}, 1, 0)
		}, "12 bytes: round -20: word 1 is"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			w := worlds(t)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			lied := make(chan error, 1)
			go func() { lied <- x.lie(&pair{ctx: ctx, comm: w[1-x.rank]}) }()
			err := x.run(ctx, w[x.rank], []step{x.step}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%v", err)
			}
			if err := <-lied; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWarmup: C and Go count alike.
func TestWarmup(t *testing.T) {
	text, err := sources.ReadFile("c/bench.h")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "BENCH_WARMUP = 20 ") || warmup != 20 {
		t.Error("c/bench.h has another warm-up")
	}
}
