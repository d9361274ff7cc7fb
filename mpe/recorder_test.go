package mpe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// callsOf is a recorder that collects the calls of a rank.
type callsOf []string

func (l *callsOf) Call(c *mpe.Call) {
	what := "receive"
	switch {
	case c.Collective != 0:
		what = c.Collective.String()
	case c.Send:
		what = "send"
	}
	state := "posted"
	if c.Ended {
		state = "ended"
	}
	*l = append(*l, fmt.Sprintf("%s %s, %d, tag %d, comm %d, %d bytes, %v, error %t", what, state, c.Peer, c.Tag,
		c.Comm, c.Bytes, c.At-c.Posted, c.Err != nil))
}

// TestCallRecorder checks that a rank's recorder receives the operations of its program that do not end at once,
// and the end of every operation, except messages with unobserved peers, and messages of collective calls.
func TestCallRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen callsOf
		c := newExtendedWith(t, 3, nil, func(cfg *mpe.Config) {
			if cfg.Rank == 0 {
				cfg.Calls, cfg.Peers[2].Unobserved = &seen, true
			}
		})
		defer c.close()
		wait := func(ops ...mpe.Op) {
			t.Helper()
			for _, o := range ops {
				if _, err := o.Await(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		is := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(seen, want) {
				t.Errorf("got\n%q\nwant\n%q", seen, want)
			}
			seen = nil
		}
		anySource := start(t, c.engines[0],
			mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: mpe.AnyTag, Comm: 4, Buf: make([]byte, 16)})
		time.Sleep(time.Second)
		wait(start(t, c.engines[1], mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: 9, Comm: 4, Buf: make([]byte, 8)}),
			anySource)
		is("receive posted, -1, tag -1, comm 4, 16 bytes, 0s, error false",
			"receive ended, 1, tag 9, comm 4, 8 bytes, 1s, error false")
		wait(start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: 3, Buf: make([]byte, 4)}))
		wait(start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: 3, Buf: make([]byte, 4)}))
		is("send ended, 1, tag 3, comm 0, 4 bytes, 0s, error false")
		wait(start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 2, Buf: make([]byte, 4)}))
		wait(start(t, c.engines[2], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 4)}))
		is()
		hanging := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: make([]byte, 4)})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := hanging.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		is("receive posted, 1, tag 0, comm 0, 4 bytes, 0s, error false",
			"receive ended, 1, tag 0, comm 0, 4 bytes, 1m0s, error true")
		none := coll.Layout{Sizes: make([]int, 3), Offsets: make([]int, 3)}
		for number, vector := range []bool{false, true} {
			var ops []mpe.Op
			for rank, e := range c.engines {
				call := coll.Call{Collective: coll.Barrier, Ranks: 3, Rank: rank}
				if vector {
					call = coll.Call{Collective: coll.Alltoall, Ranks: 3, Rank: rank, Vector: true, Send: none,
						Recv: none}
				}
				o, err := e.StartCollective(&collective.Operation{Call: call, Members: []int{0, 1, 2}, Comm: 1,
					Tag: number + 1})
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, o)
			}
			wait(ops...)
		}
		is("Barrier posted, -1, tag 1, comm 1, 0 bytes, 0s, error false",
			"Barrier ended, -1, tag 1, comm 1, 0 bytes, 0s, error false",
			"Alltoall ended, -1, tag 2, comm 1, -1 bytes, 0s, error false")
	})
}
