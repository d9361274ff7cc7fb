package standin_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// maxWords is the maximum length of a message between the ranks.
const maxWords = 600_000

// cluster consists of a host, which is rank 0, and stand-ins.
type cluster struct {
	t       *testing.T
	net     *memnet.Net
	engines []*mpe.Engine
}

func newCluster(t *testing.T, size int) *cluster {
	t.Helper()
	return newClusterFrom(t, size, 1)
}

// newClusterFrom returns a cluster whose stand-ins are the ranks from firstStandIn on.
func newClusterFrom(t *testing.T, size, firstStandIn int) *cluster {
	t.Helper()
	c := &cluster{t: t, net: memnet.New(size)}
	for rank := range size {
		tr := c.net.Transport(rank)
		cfg := mpe.Config{Rank: rank}
		for peer := range size {
			hs := handshake.Config{MaxWords: maxWords}
			if peer >= firstStandIn {
				hs.Peer = handshake.FPGAPeer(uint32(peer))
			} else {
				hs.Peer = handshake.SoftwarePeer()
			}
			if rank >= firstStandIn {
				hs.Shape = protocol.FPGAShape(true)
				hs.Timing = handshake.DeployedFPGA(uint32(rank))
				hs.Quirks = handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true,
					CarryOver: true}
			} else {
				hs.Shape = protocol.CPUShape()
				hs.Timing = handshake.DefaultTiming(hs.Peer)
			}
			cfg.Peers = append(cfg.Peers, mpe.Peer{Handshake: hs, Transport: tr, Kind: "test"})
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.engines = append(c.engines, e)
	}
	return c
}

// close closes all engines at the same time.
func (c *cluster) close() {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for _, e := range c.engines {
		wedgetest.Check(c.t, e)
		_ = e.Close(done) // fails only because of operations that the test has cut off
	}
}

// running is a kernel that is running.
type running struct {
	standin.Kernel
	engine *mpe.Engine
	stop   context.CancelFunc
	ended  chan error
	logs   *observer.ObservedLogs

	mu     sync.Mutex
	broken []error // errors passed to standin.Env.Failed
}

func (r *running) notify(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = append(r.broken, err)
}

// brokenExchanges returns the errors that the kernel has reported.
func (r *running) brokenExchanges() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.broken)
}

// run starts a kernel on a rank.
func (c *cluster) run(rank int, spec string, opts config.KernelOptions) *running {
	c.t.Helper()
	r := c.prepare(spec, opts)
	c.start(rank, r)
	return r
}

// prepare creates a kernel whose log is available to the test.
func (c *cluster) prepare(spec string, opts config.KernelOptions) *running {
	c.t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	r := &running{ended: make(chan error, 1), logs: logs}
	k, err := standin.New(spec, opts, standin.Env{Log: zap.New(core), OnFailure: r.notify})
	if err != nil {
		c.t.Fatal(err)
	}
	r.Kernel = k
	return r
}

// start starts a kernel that has been prepared.
func (c *cluster) start(rank int, r *running) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.engine = cancel, c.engines[rank]
	go func() { r.ended <- r.Run(ctx, c.engines[rank]) }()
}

// stats contains counters of a kernel and of its engine.
type stats struct{ Sent, SentWords, Received, ReceivedWords, Errors, Starts uint64 }

// Stats returns the kernel's counters together with the engine's.
func (r *running) Stats() stats {
	own := r.Kernel.Stats()
	s := stats{Errors: own.Errors, Starts: own.Starts}
	r.engine.Counters(func(*state.RankCounters) {}, func(p *state.PeerCounters) {
		s.Sent, s.SentWords = s.Sent+p.Sent, s.SentWords+p.SentBytes/protocol.WordLen
		s.Received, s.ReceivedWords = s.Received+p.Received, s.ReceivedWords+p.ReceivedBytes/protocol.WordLen
	})
	return s
}

// cancel cancels the kernel's context, and checks that the kernel ends for that reason.
func (r *running) cancel(t *testing.T) {
	t.Helper()
	r.stop()
	if err := r.wait(t); err != context.Canceled {
		t.Errorf("kernel %v ended with %v, want %v", r, err, context.Canceled)
	}
}

// wait waits for the kernel to end. In a bubble, its timeout takes no real time.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatalf("kernel %v does not end", r)
		return nil
	}
}

// within returns a context with a timeout for the test's own operations.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// send sends a message from rank 0.
func (c *cluster) send(to int, data []byte, d protocol.Datatype) {
	c.t.Helper()
	if _, err := c.engines[0].Send(within(c.t, time.Minute), to, data, mpe.Options{Datatype: d}); err != nil {
		c.t.Fatalf("send to rank %d: %v", to, err)
	}
}

// recv receives a message at rank 0 and checks its content.
func (c *cluster) recv(from int, want []byte, d protocol.Datatype) {
	c.t.Helper()
	buf := make([]byte, len(want)+64)
	st, err := c.engines[0].Recv(within(c.t, time.Minute), from, buf, mpe.Options{Datatype: d})
	if err != nil {
		c.t.Fatalf("receive from rank %d: %v", from, err)
	}
	if int(st.Words)*4 != len(want) || st.Datatype != d || !bytes.Equal(buf[:len(want)], want) {
		c.t.Fatalf("received %d %v words from rank %d, want %d %v words, or they differ", st.Words, st.Datatype, from,
			len(want)/4, d)
	}
}

// words returns a message that depends on seed.
func words(n int, seed uint32) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(b[4*i:], seed*2654435761+uint32(i)*40503)
	}
	return b
}
