package mpe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// kill ends a rank without notice to the other ranks.
func (c *cluster) kill(rank int) {
	c.net.SetHook(func(_, _ int, _ []byte) []time.Duration { return nil })
	c.engines[rank].Close(over())
	c.net.SetHook(nil)
}

// restart restarts a rank without its state.
func (c *cluster) restart(rank int) {
	c.t.Helper()
	tr := c.net.Transport(rank)
	cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, len(c.engines))}
	for p := range cfg.Peers {
		cfg.Peers[p] = mpe.Peer{Extended: &extended.Config{Seed: uint64(1000 + rank*10 + p), MaxLength: 1 << 24},
			Transport: tr}
	}
	e, err := mpe.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.engines[rank] = e
}

// TestPeerLost checks that receives posted to a peer, and probes waiting for it, end when it is known to be
// lost. Receives from any source, and later operations, wait for its return.
func TestPeerLost(t *testing.T) {
	const tag, other = 1, 2
	for _, tt := range []struct {
		event state.Event
		lose  func(c *cluster)
	}{
		{state.EventClosedByPeer, func(c *cluster) { c.engines[1].Close(c.t.Context()) }},
		{state.EventSessionChanged, func(c *cluster) {
			c.kill(1)
			c.restart(1)
			send(c, 1, other)
		}},
		{state.EventProcessEnded, func(c *cluster) {
			c.kill(1)
			c.engines[0].Deliver(mpe.RxPacket{Kind: mpe.RxPeerDied, Peer: 1})
		}},
		{state.EventUnreachable, func(c *cluster) {
			c.kill(1)
			if _, err := c.engines[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: other}); err != nil {
				c.t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}},
	} {
		t.Run(tt.event.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newExtended(t, 3, func(x *extended.Config) { x.Timing.UnreachableAfter = 10 * time.Second })
				defer c.close()
				send(c, 1, other) // establishes a session
				finish(t, start(t, c.engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: other, Buf: make([]byte, 4)}))
				if tt.event == state.EventProcessEnded {
					c.engines[0].Deliver(mpe.RxPacket{Kind: mpe.RxConnected, Peer: 1})
				}
				posted := start(t, c.engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: make([]byte, 4)})
				world := start(t, c.engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Comm: 8, Buf: make([]byte, 4)})
				any := start(t, c.engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: tag, Buf: make([]byte, 4)})
				third := start(t, c.engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: 2, Tag: tag, Buf: make([]byte, 4)})
				probe := make(chan error, 1)
				go func() {
					_, _, err := c.engines[0].Probe(t.Context(), mpe.Match{Source: 1, Tag: tag}, true)
					probe <- err
				}()
				synctest.Wait()
				tt.lose(c)
				synctest.Wait()
				time.Sleep(time.Second)
				for what, err := range map[string]error{"receive": outcome(t, posted),
					"of a communicator": outcome(t, world), "probe": <-probe} {
					lost, ok := errors.AsType[*mpe.PeerLostError](err)
					if !ok || *lost != (mpe.PeerLostError{Rank: 1, Event: tt.event}) ||
						!errors.Is(err, mpe.ErrPeerLost) {
						t.Errorf("%s: %v", what, err)
					}
				}
				later := start(t, c.engines[0],
					mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: make([]byte, 4)})
				time.Sleep(time.Minute)
				if ended(any) || ended(third) || ended(later) {
					t.Errorf("ended: any %v, of another peer %v, posted later %v", ended(any), ended(third),
						ended(later))
				}
				if tt.event != state.EventSessionChanged {
					c.restart(1)
				}
				send(c, 1, tag)
				send(c, 1, tag)
				send(c, 2, tag)
				finish(t, any, third, later)
			})
		})
	}
}

// send sends a message from a rank to rank 0.
func send(c *cluster, from, tag int) {
	c.t.Helper()
	o, err := c.engines[from].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: tag, Buf: []byte("four")})
	if err == nil {
		_, err = o.Await(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// over returns a context that is done.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestGoneWithoutMessage checks that the loss of a process that has sent nothing is detected. After it was
// reported, or after the process closed its session, a receive waits for the next process.
func TestGoneWithoutMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		gone := func() { c.engines[0].Deliver(mpe.RxPacket{Kind: mpe.RxPeerDied, Peer: 1}) }
		post := func() mpe.Op {
			return start(t, c.engines[0], mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: make([]byte, 4)})
		}
		never := post()
		gone()
		if ended(never) {
			t.Error("it was never there")
		}
		c.engines[0].Deliver(mpe.RxPacket{Kind: mpe.RxConnected, Peer: 1})
		gone()
		if err := outcome(t, never); !errors.Is(err, mpe.ErrPeerLost) {
			t.Error(err)
		}
		later := post()
		gone()
		if ended(later) {
			t.Error("a report of known state ended it")
		}
		send(c, 1, 0)
		finish(t, later)
	})
}

// withFPGA returns three ranks. Rank 1 is a peer of the cloudfpga profile; the others use the extended
// profile between each other.
func withFPGA(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, net: memnet.New(3)}
	for rank := range 3 {
		tr := c.net.Transport(rank)
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 3)}
		for p := range cfg.Peers {
			cfg.Peers[p] = mpe.Peer{Extended: &extended.Config{Seed: uint64(rank*3 + p + 1)}, Transport: tr}
			if rank == 1 || p == 1 {
				rules := handshake.SoftwarePeer()
				if p == 1 {
					rules = handshake.FPGAPeer(1)
				}
				timing := handshake.DefaultTiming(rules)
				timing.ClearDeadline = 5 * time.Second
				cfg.Peers[p] = mpe.Peer{Handshake: handshake.Config{Peer: rules, Shape: protocol.CPUShape(),
					Timing: timing, MaxWords: 1 << 20}, Transport: tr}
			}
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.engines = append(c.engines, e)
	}
	return c
}

// TestAbortWithFPGA checks that a call that fails because an FPGA does not take part ends on the waiting software
// ranks. The FPGA gets only a SEND_REQUEST, which it would get in any case.
func TestAbortWithFPGA(t *testing.T) {
	for _, of := range []coll.Collective{coll.Barrier, coll.Allreduce, coll.Allgather} {
		t.Run(of.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := withFPGA(t)
				defer c.close()
				types := map[protocol.Type]int{}
				c.net.SetHook(func(_, to int, b []byte) []time.Duration {
					if to == 1 {
						h, defect := protocol.CloudFPGA.Parse(b)
						if !defect.OK() {
							t.Errorf("%d bytes to the FPGA: %v", len(b), defect.Err())
						}
						types[h.Type]++
					}
					return []time.Duration{0}
				})
				x := colltest.NewCase(of, "", 3, 0, 300)
				waits := post(t, x, c.engines[2], 7)
				fails := post(t, x, c.engines[0], 7)
				begun := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), 8*time.Second)
				defer stop()
				_, err := fails.Await(ctx)
				if err == nil {
					t.Fatal("it succeeds without a member")
				}
				err = outcome(t, waits)
				failed, ok := errors.AsType[*collective.CallFailedError](err)
				if !ok || failed.Rank != 0 || failed.Collective != of || failed.Number != 7 {
					t.Errorf("the other software rank: %v", err)
				}
				if took := time.Since(begun); took > 9*time.Second {
					t.Errorf("after %v", took)
				}
				for of, n := range types {
					if of != protocol.SendRequest {
						t.Errorf("%d packets %v to the FPGA", n, of)
					}
				}
				// A later call has no epoch by which to recognize the abort.
				late := post(t, x, c.engines[2], 8)
				abortCall(t, late, time.Second)
				// The abort of another call does not end a call in progress.
				time.Sleep(time.Minute)
				other := post(t, x, c.engines[2], 9)
				gives := post(t, x, c.engines[0], 10)
				abortCall(t, gives, time.Second)
				synctest.Wait()
				if ended(other) {
					t.Error("the abort of call 10 ended call 9")
				}
				abortCall(t, other, time.Second)
			})
		})
	}
}

// TestPeerFailed checks that receives posted to a stand-in end when its kernel fails. Receives from any
// source or another rank, and later ones, wait for messages.
func TestPeerFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, handshake.FPGAPeer(1), nil)
		defer c.close()
		receive := func(from int) mpe.Op {
			return start(t, c.engines[0], mpe.Operation{Kind: mpe.OpRecv, Peer: from, Buf: make([]byte, 4)})
		}
		posted, third := receive(1), receive(2)
		cause := &handshake.TruncatedError{Remote: 0, Posted: 1, Sent: 2}
		c.engines[0].PeerFailed(1, cause)
		failed, ok := errors.AsType[*mpe.PeerFailedError](outcome(t, posted))
		if !ok || failed.Rank != 1 || failed.Err != error(cause) || !errors.Is(failed, mpe.ErrPeerLost) ||
			errors.Is(failed, mpe.ErrTruncated) {
			t.Errorf("a receive ends with %v", failed)
		}
		later, any := receive(1), receive(mpe.AnySource)
		time.Sleep(time.Minute)
		if ended(later) || ended(third) || ended(any) {
			t.Errorf("ended: posted later %v, of another peer %v, any %v", ended(later), ended(third), ended(any))
		}
		send(c, 1, 0)
		send(c, 2, 0)
		send(c, 1, 0)
		finish(t, later, third, any)
		// If no receive is posted, the next receive ends if a message was sent and no message was received since.
		c.engines[0].PeerFailed(1, cause)
		idle := receive(1)
		time.Sleep(time.Minute)
		if ended(idle) {
			t.Error("a failure that broke no exchange ends the next receive")
		}
		send(c, 1, 0)
		finish(t, idle)
		taken := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 4)})
		finish(t, start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: []byte("four")}), taken)
		c.engines[0].PeerFailed(1, cause)
		if err := outcome(t, receive(1)); !errors.Is(err, mpe.ErrPeerLost) {
			t.Errorf("the next receive ends with %v", err)
		}
		c.engines[0].PeerFailed(1, cause)
		sent := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpSend, Peer: 0, Buf: []byte("four")})
		synctest.Wait()
		finish(t, receive(1), sent)
	})
}
