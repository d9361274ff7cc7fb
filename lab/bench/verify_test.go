package bench

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// sessionOf returns a session for a rank in a test.
func sessionOf(ctx context.Context, c *mpi.Comm) *session {
	return &session{
		ctx: ctx, comm: c, out: io.Discard, methods: []method{{}},
		used: func() time.Duration { return 0 }, memory: func() int { return 0 },
	}
}

// TestLies checks that a wrong message ends the measurement on the rank that receives it.
func TestLies(t *testing.T) {
	say := func(tag int, values ...int32) func(*session) error {
		return func(s *session) error { return mpi.Send(s.ctx, s.comm, values, 1-s.comm.Rank(), tag) }
	}
	both := func(all ...func(*session) error) func(*session) error {
		return func(s *session) error {
			for _, f := range all {
				if err := f(s); err != nil {
					return err
				}
			}
			return nil
		}
	}
	pings := func(s *session) error {
		for i := -warmup; i < 1; i++ {
			if err := s.sendNumber(int32(i), 1, tagPing); err != nil {
				return err
			}
		}
		return nil
	}
	for _, x := range []struct {
		name, workload string
		rank           int // the rank that is measured; the other one sends a wrong message
		step           step
		lie            func(*session) error
		says           string
	}{
		{"pong", "queues", 0, step{2, 1}, both(say(tagControl, 0), say(tagPong, 7)),
			"posted 2: a pong holds 7 instead of 19"},
		{"ping", "queues", 1, step{2, 1}, say(tagPing, 7), "posted 2: a ping holds 7 instead of -20"},
		{"posted", "queues", 1, step{2, 1}, both(pings, say(tagPosted+1, 1), say(tagPosted, 9)),
			"posted 2: a posted receive holds 9 instead of 0"},
		{"number", "pingpong", 0, step{4, 1}, say(0, 7), "message 4: round -20: word 0 is 7 instead of 19"},
		{"last word", "pingpong", 0, step{12, 1}, say(0, 19, pattern(1, 1), 7),
			"message 12: round -20: word 2 is 7 instead of 19"},
		{"middle", "pingpong", 1, step{12, 1}, say(0, -20, pattern(1, 1), -20), "message 12: round -20: word 1 is"},
		{"length", "pingpong", 0, step{6, 1}, say(0), "6 bytes are not a number of words"},
		{"ready", "rate", 0, step{4, 1}, say(0, 7), "the number after posted receives holds 7 instead of 0"},
		{"answer", "stream", 0, step{4, 1}, both(say(0, 0), say(0, 7)), "an answer holds 7 instead of 1"},
		{"window", "stream", 1, step{12, 1},
			both(say(0, -8, pattern(1, 0), -8), say(0, -7, pattern(1, 0), -8), say(0, 0, 0, 0), say(0, 0, 0, 0)),
			"window -2, message 1: word 2 is -8 instead of -7"},
		{"token", "ring", 0, step{2, 1}, say(0, 7), "the token holds 7 instead of -39"},
		{"ranks", "ring", 0, step{3, 1}, say(0, 7), "there are 2 ranks for a step of 3"},
		{"broadcast", "bcast", 0, step{4, 1}, say(0, 7), "message 4: there are 2 ranks instead of 8"},
		{"end", "idle", 1, step{1, 1}, say(0, 7), "the number that ends the wait holds 7 instead of 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			worlds := worlds(t)
			w, err := workloadNamed(x.workload)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			lied := make(chan error, 1)
			go func() { lied <- x.lie(sessionOf(ctx, worlds[1-x.rank])) }()
			err = sessionOf(ctx, worlds[x.rank]).run(w, []step{x.step})
			if err == nil || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%v", err)
			}
			if err := <-lied; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWarmUp checks that the first step runs again and again before it is measured, until rank 0 decides that it is
// enough, and that these runs do not count.
func TestWarmUp(t *testing.T) {
	worlds := worlds(t)
	w, err := workloadNamed("pingpong")
	if err != nil {
		t.Fatal(err)
	}
	var out [2]bytes.Buffer
	var sessions [2]*session
	var group errgroup.Group
	steps := []step{{4, 3}, {16, 2}}
	for rank, world := range worlds {
		s := sessionOf(t.Context(), world)
		s.out = &out[rank]
		if sessions[rank] = s; rank == 0 { // rank 0 decides for both
			s.warm = 20 * time.Millisecond
		} else {
			s.warm = time.Nanosecond
		}
		group.Go(func() error { return s.run(w, steps) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if o, err := parseOutput(out[0].Bytes(), w, steps, 1); err != nil || len(o.points[0]) != len(steps) {
		t.Errorf("%v: %v\n%s", o.points, err, out[0].String())
	}
	for rank, s := range sessions {
		if once := w.total(steps) / 2; s.verified < once+warmup+steps[0].iterations {
			t.Errorf("rank %d has verified %d messages, of which %d count", rank, s.verified, once)
		}
	}
}

// TestSameNumbers checks that constants have the same values in C and Go.
func TestSameNumbers(t *testing.T) {
	text, err := sources.ReadFile("c/stats.h")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "BENCH_WARMUP = 20, BENCH_WARMUP_WINDOWS = 2 ") || warmup != 20 ||
		warmupWindows != 2 {
		t.Error("c/stats.h has another warm-up")
	}
	text, err = sources.ReadFile("c/bench.h")
	if err != nil || !strings.Contains(string(text), "BENCH_WARM "+strconv.Quote(warmPrefix)) {
		t.Errorf("c/bench.h has another prefix: %v", err)
	}
	text, err = sources.ReadFile("c/collective.c")
	if err != nil || !strings.Contains(string(text), "{ READY = 1, BUSY, TIMES, GO, STAMP_RANKS = 64 }") ||
		stampRanks != 64 || tagReady != 1 || tagBusy != 2 {
		t.Errorf("c/collective.c has other numbers: %v", err)
	}
	var names []string
	for _, op := range operations {
		names = append(names, strconv.Quote(op.name))
	}
	if !strings.Contains(string(text), "names[] = {"+strings.Join(names, ", ")+"}") {
		t.Errorf("c/collective.c does not have the operations %v", names)
	}
	for name, size := range map[string]string{"rate": "64", "stream": "4", "multipair": "64"} {
		w, err := workloadNamed(name)
		if err != nil || w.args[0] != size {
			t.Errorf("%s: %v", name, w.args)
		}
	}
	if rateWindow != 64 || streamWindow != 4 {
		t.Error("Go has other windows")
	}
}
