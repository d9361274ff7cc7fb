package standin_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		spec string
		opts config.KernelOptions
		want string
	}{
		{"", config.KernelOptions{}, "unknown kernel"},
		{"ehco", config.KernelOptions{}, "unknown kernel"},
		{"exec:", config.KernelOptions{}, "no program: write exec:/path/prog"},
		{"exec:   ", config.KernelOptions{}, "no program: write exec:/path/prog"},
		{"exec:/nowhere/prog x", config.KernelOptions{}, "/nowhere/prog"},
	}
	for _, tt := range tests {
		k, err := standin.New(tt.spec, tt.opts, standin.Env{})
		if err == nil || k != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%q, %+v): %v, %v; want an error with %q", tt.spec, tt.opts, k, err, tt.want)
		}
	}
}

func TestRunRefusesPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		defer c.close()
		for _, spec := range []string{"echo", "sink", "source"} {
			for _, peer := range []int{1, 2} { // the rank itself and an unknown rank
				if err := c.run(1, spec, config.KernelOptions{Peer: peer, Words: 1}).wait(t); !errors.Is(err,
					mpe.ErrRank) {
					t.Errorf("%s with peer %d on rank 1 of 2: %v", spec, peer, err)
				}
			}
		}
		lonely := newCluster(t, 1)
		defer lonely.close()
		if err := lonely.run(0, "ring", config.KernelOptions{Words: 1}).wait(t); !errors.Is(err, mpe.ErrRank) {
			t.Errorf("ring of one: %v", err)
		}
	})
}

func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		defer c.close()
		k := c.run(1, "echo", config.KernelOptions{})
		total, n := 0, uint32(0)
		for _, d := range []protocol.Datatype{protocol.Int, protocol.Float} {
			for _, size := range []int{1, 2, 3, 346, 347, 348, 349, 1000, 1055, maxWords} {
				n++
				total += size
				msg := words(size, n)
				c.send(1, msg, d)
				c.recv(1, msg, d)
			}
		}
		synctest.Wait()
		want := stats{Sent: uint64(n), SentWords: uint64(total), Received: uint64(n), ReceivedWords: uint64(total)}
		if s := k.Stats(); s != want {
			t.Errorf("stats %+v, want %+v", s, want)
		}
		k.cancel(t)
	})
}

func TestEchoSurvivesLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		defer c.close()
		k := c.run(1, "echo", config.KernelOptions{})
		n := 0
		c.net.SetHook(func(from, to int, b []byte) []time.Duration {
			// Lose every third packet except ACKs, which an FPGA sends only once.
			if h, err := protocol.CloudFPGA.Decode(b); err == nil && h.Type == protocol.Ack {
				return []time.Duration{0}
			}
			if n++; n%3 == 0 {
				return nil
			}
			return []time.Duration{0}
		})
		for i := range uint32(20) {
			msg := words(100, i)
			c.send(1, msg, protocol.Int)
			c.recv(1, msg, protocol.Int)
		}
		k.cancel(t)
	})
}

// TestTooLongDoesNotSpin checks that a message that is too long is lost and logged, and that the kernel
// continues after a pause.
func TestTooLongDoesNotSpin(t *testing.T) {
	for _, spec := range []string{"echo", "sink", "ring"} {
		t.Run(spec, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 2)
				defer c.close()
				k := c.run(1, spec, config.KernelOptions{Words: 10})
				start := time.Now()
				const tooLong = 8
				for i := range uint32(tooLong) {
					c.send(1, words(11, i), protocol.Int)
				}
				c.send(1, words(10, 9), protocol.Int)
				if spec != "sink" {
					c.recv(1, words(10, 9), protocol.Int)
				}
				// The pauses are 0.1 + 0.2 + 0.4 + 0.8 + 1.6 + 3.2 + 5 + 5 seconds.
				if d := time.Since(start); d < 16300*time.Millisecond || d > 30*time.Second {
					t.Errorf("took %v", d)
				}
				synctest.Wait()
				if s := k.Stats(); s.Errors != tooLong || s.ReceivedWords != 10 {
					t.Errorf("stats %+v", s)
				}
				c.send(1, words(11, 0), protocol.Int)
				synctest.Wait()
				pauses := k.logs.FilterMessage("kernel restarts its loop").All()
				if len(pauses) != tooLong+1 {
					t.Fatalf("%d failures logged, want %d", len(pauses), tooLong+1)
				}
				if broken := k.brokenExchanges(); len(broken) != tooLong+1 ||
					!errors.Is(broken[0], handshake.ErrTruncated) {
					t.Errorf("broken exchanges %v", broken)
				}
				if text := pauses[0].ContextMap()["error"].(string); !strings.Contains(text, "kernel_options.words") {
					t.Errorf("it does not say what to do: %s", text)
				}
				// After a success, the next failure counts as the first one.
				for i, want := range map[int]time.Duration{0: 100 * time.Millisecond, tooLong - 1: 5 * time.Second,
					tooLong: 100 * time.Millisecond} {
					if d := pauses[i].ContextMap()["after"]; d != want {
						t.Errorf("pause %d is %v, want %v", i, d, want)
					}
				}
				k.cancel(t)
			})
		})
	}
}

// faulty is a rank whose first operations fail.
type faulty struct {
	*mpe.Engine
	err  error
	left int
}

func (f *faulty) Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error) {
	if f.left--; f.left >= 0 {
		return mpe.Status{}, f.err
	}
	return f.Engine.Send(ctx, dst, data, opts)
}

// TestEchoAnswersEverybody runs one kernel for each rank that sends, and checks that every rank gets an answer.
func TestEchoAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClusterFrom(t, 4, 3)
		defer c.close()
		k := c.run(3, "echo", config.KernelOptions{Peer: config.AnyPeer})
		ctx := within(t, time.Hour)
		var all sync.WaitGroup
		for rank := range 3 {
			all.Go(func() {
				for i := range uint32(20) {
					sent, back := words(100, uint32(rank)<<8+i), make([]byte, 400)
					if _, err := c.engines[rank].Send(ctx, 3, sent, mpe.Options{}); err != nil {
						t.Error(err)
						return
					}
					if _, err := c.engines[rank].Recv(ctx, 3, back, mpe.Options{}); err != nil ||
						!bytes.Equal(back, sent) {
						t.Errorf("rank %d, message %d: %v", rank, i, err)
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		k.cancel(t)
	})
}

// TestFailureLimit checks that a kernel that fails without a success ends after the limit, and that a kernel
// that makes progress does not.
func TestFailureLimit(t *testing.T) {
	for _, tt := range []struct {
		every int // every n-th send succeeds; 0 means none
		want  error
	}{{0, standin.ErrKeepsFailing}, {5, context.DeadlineExceeded}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2)
			defer c.close()
			k, err := standin.New("source", config.KernelOptions{Words: 3}, standin.Env{FailureLimit: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			rank := &moody{c.engines[1], tt.every, 0}
			if err := k.Run(within(t, time.Hour), rank); !errors.Is(err, tt.want) {
				t.Errorf("ended with %v, want %v", err, tt.want)
			}
		})
	}
}

// moody is a rank on which only every n-th send succeeds.
type moody struct {
	*mpe.Engine
	every, n int
}

func (m *moody) Send(context.Context, int, []byte, mpe.Options) (mpe.Status, error) {
	if m.n++; m.every > 0 && m.n%m.every == 0 {
		return mpe.Status{}, nil
	}
	return mpe.Status{}, handshake.ErrTimeout
}

// TestRefusedSendDoesNotSpin checks that a kernel does not spin if its sends are rejected immediately, as after
// a failed fragmented message, and that a source skips no message.
func TestRefusedSendDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		defer c.close()
		k, err := standin.New("source", config.KernelOptions{Words: 3, Count: 2}, standin.Env{})
		if err != nil {
			t.Fatal(err)
		}
		rank := &faulty{c.engines[1], &handshake.DeadEndError{Cause: handshake.ErrPartial}, 100}
		start := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- k.Run(t.Context(), rank) }()
		ctx := within(t, time.Hour)
		for m := range 2 {
			buf := make([]byte, 16)
			if _, err := c.engines[0].Recv(ctx, 1, buf, mpe.Options{}); err != nil {
				t.Fatal(err)
			}
			if buf[2] != byte(m)<<4 || buf[4] != 1 {
				t.Errorf("message %d is % x", m, buf)
			}
		}
		if err := <-ended; err != nil || k.Stats().Errors != 100 {
			t.Errorf("ended with %v after %+v", err, k.Stats())
		}
		if d := time.Since(start); d < 400*time.Second {
			t.Errorf("100 refusals took %v", d)
		}
	})
}

func TestRing(t *testing.T) {
	t.Run("stand-ins pass a host's messages on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3)
			defer c.close()
			a, b := c.run(1, "ring", config.KernelOptions{Count: 4}), c.run(2, "ring", config.KernelOptions{Count: 4})
			for i, n := range []int{1, 347, 3000, 2} {
				d := protocol.Datatype(i % 2)
				c.send(1, words(n, uint32(n)), d)
				c.recv(2, words(n, uint32(n)), d)
			}
			for _, k := range []*running{a, b} {
				if err := k.wait(t); err != nil {
					t.Error(err)
				}
				if k.logs.FilterMessage("kernel completed").Len() != 1 {
					t.Error("the end of the work is not logged")
				}
			}
		})
	})
	t.Run("of stand-ins alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newClusterFrom(t, 3, 0)
			defer c.close()
			const rounds, size = 50, 1000
			opts := config.KernelOptions{Count: rounds, Words: size, Datatype: config.Datatype(protocol.Float)}
			// Rank 0 is the last to start, and starts late.
			b, d := c.run(1, "ring", opts), c.run(2, "ring", opts)
			a := c.run(0, "ring", opts)
			for rank, k := range []*running{a, b, d} {
				if err := k.wait(t); err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
				want := stats{Sent: rounds, SentWords: rounds * size, Received: rounds, ReceivedWords: rounds * size}
				if s := k.Stats(); s != want {
					t.Errorf("rank %d: %+v, want %+v", rank, s, want)
				}
			}
		})
	})
	t.Run("rank 0 forwards the echo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newClusterFrom(t, 2, 0)
			defer c.close()
			k := c.run(0, "ring", config.KernelOptions{Words: 5, Count: 2})
			ctx := within(t, time.Minute)
			buf := make([]byte, 20)
			for i := range 2 {
				st, err := c.engines[1].Recv(ctx, 0, buf, mpe.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if wantWords := []uint32{5, 2}[i]; st.Words != wantWords || buf[4] != []byte{1, 77}[i] {
					t.Errorf("round %d: %d words, % x", i, st.Words, buf)
				}
				if _, err := c.engines[1].Send(ctx, 0, []byte{9, 0, 0, 0, 77, 0, 0, 0}, mpe.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := k.wait(t); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		defer c.close()
		k := c.run(2, "sink", config.KernelOptions{Words: 2000})
		c.send(2, words(1, 0), protocol.Int)
		c.send(2, words(2000, 0), protocol.Float)
		c.send(2, words(347, 0), protocol.Int)
		synctest.Wait()
		if s, want := k.Stats(), (stats{Received: 3, ReceivedWords: 2348}); s != want {
			t.Errorf("stats %+v, want %+v", s, want)
		}
		k.cancel(t)
	})
}

func TestSource(t *testing.T) {
	tests := []struct {
		name   string
		d      protocol.Datatype
		m, i   uint32
		expect uint32
	}{
		{"int", protocol.Int, 0, 0, 0},
		{"int", protocol.Int, 2, 5, 0x00200005},
		{"int", protocol.Int, 4097, 6, 0x00100006},
		{"float", protocol.Float, 0, 3, math.Float32bits(3)},
		{"float", protocol.Float, 1, 2, math.Float32bits(1048578)},
		{"float", protocol.Float, 16, 2, math.Float32bits(2)},
	}
	for _, tt := range tests {
		if w := standin.PatternWord(tt.d, tt.m, tt.i); w != tt.expect {
			t.Errorf("%s: word %d of message %d is %#x, want %#x", tt.name, tt.i, tt.m, w, tt.expect)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		defer c.close()
		const count, size, interval = 5, 400, 250 * time.Millisecond
		k := c.run(1, "source", config.KernelOptions{Words: size, Count: count, Interval: interval,
			Datatype: config.Datatype(protocol.Float)})
		start := time.Now()
		for m := range uint32(count) {
			want := make([]byte, 0, 4*size)
			for i := range uint32(size) {
				w := math.Float32bits(float32((m<<20 + i) % (1 << 24)))
				want = append(want, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
			}
			c.recv(1, want, protocol.Float)
			if d := time.Since(start); d != time.Duration(m)*interval {
				t.Errorf("message %d came after %v", m, d)
			}
		}
		if err := k.wait(t); err != nil || k.Stats().SentWords != count*size {
			t.Errorf("ended with %v, %+v", err, k.Stats())
		}
	})
}

// TestCancel checks that a kernel ends when its context ends, no matter what the kernel is doing. The bubble
// ends only after all goroutines have exited.
func TestCancel(t *testing.T) {
	for _, spec := range []string{"echo", "ring", "sink", "source", "jacobi", "kmeans"} {
		t.Run(spec, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 2)
				defer c.close()
				k := c.run(1, spec, config.KernelOptions{Words: 1000, Interval: time.Second})
				<-time.After(10 * time.Second) // by now, it is waiting in a receive or a send
				k.cancel(t)

				k = c.run(1, spec, config.KernelOptions{Words: 1})
				c.close()
				if err := k.wait(t); !errors.Is(err, mpe.ErrClosed) {
					t.Errorf("ended with %v when the rank was shut down", err)
				}
			})
		})
	}
	t.Run("in a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2)
			defer c.close()
			k := c.run(1, "echo", config.KernelOptions{Words: 1})
			c.send(1, words(2, 0), protocol.Int)
			synctest.Wait()
			k.cancel(t)
		})
	})
	t.Run("between a source's messages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2)
			defer c.close()
			k := c.run(1, "source", config.KernelOptions{Words: 1, Interval: time.Hour})
			c.recv(1, []byte{0, 0, 0, 0}, protocol.Int)
			synctest.Wait()
			k.cancel(t)
		})
	})
}

// TestMemoryOf64Echoes uses 64 stand-ins, which is the largest cluster of deployed FPGAs. The heap includes
// whole buffers, but only the used parts of buffers are resident.
func TestMemoryOf64Echoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 65)
		defer c.close()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var ks []*running
		for rank := 1; rank <= 64; rank++ {
			ks = append(ks, c.run(rank, "echo", config.KernelOptions{}))
		}
		for rank := 1; rank <= 64; rank++ {
			c.send(rank, words(3, uint32(rank)), protocol.Int)
			c.recv(rank, words(3, uint32(rank)), protocol.Int)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 100<<20 {
			t.Errorf("64 echoes hold %d MB", grown>>20)
		}
		for _, k := range ks {
			k.cancel(t)
		}
	})
}
