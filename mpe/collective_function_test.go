package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// TestCollectiveOfAUsersOperation checks that a user's function is called without the engine's lock, in the
// order of ranks.
func TestCollectiveOfAUsersOperation(t *testing.T) {
	const ranks = 5
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, ranks, nil)
		defer c.close()
		// Elements are ranges of ranks: two can be joined only if one follows the other.
		join := func(e *mpe.Engine) func(in, inout []byte) error {
			return func(in, inout []byte) error {
				e.Snapshot() // this acquires the engine's lock
				for i := 0; i < len(in); i += 2 {
					if in[i+1]+1 != inout[i] {
						inout[i], inout[i+1] = 0xff, 0xff
						continue
					}
					inout[i] = in[i]
				}
				return nil
			}
		}
		for _, of := range []coll.Collective{coll.Reduce, coll.Allreduce, coll.Scan} {
			for _, a := range coll.Algorithms(of) {
				call := coll.Call{Collective: of, Ranks: ranks, Root: 2, Bytes: 4, Elem: 2, Ordered: true}
				if a.CheckSupport(call) != nil {
					continue
				}
				var ops []mpe.Op
				recv := make([][]byte, ranks)
				for r, e := range c.engines {
					call.Rank = r
					recv[r] = make([]byte, 4)
					o, err := e.StartCollective(&collective.Operation{Call: call, Members: []int{0, 1, 2, 3, 4},
						Comm: 1, Tag: 1,
						Send: []byte{byte(r), byte(r), byte(r), byte(r)}, Recv: recv[r], User: join(e),
						Algorithm: a.Name})
					if err != nil {
						t.Fatal(err)
					}
					ops = append(ops, o)
				}
				finish(t, ops...)
				for r := range ranks {
					want := []byte{0, ranks - 1, 0, ranks - 1}
					switch {
					case of == coll.Reduce && r != 2:
						continue
					case of == coll.Scan:
						want = []byte{0, byte(r), 0, byte(r)}
					}
					if !bytes.Equal(recv[r], want) {
						t.Errorf("%v by %s: rank %d has %v", of, a.Name, r, recv[r])
					}
				}
			}
		}
	})
}

// TestAbandonedWhileComputing checks that a caller whose context is done while the user's function is using the
// buffers gets the buffers back when the function returns.
func TestAbandonedWhileComputing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		computing, goOn := make(chan struct{}), make(chan struct{})
		var ops []mpe.Op
		returned := false
		for r, e := range c.engines {
			o, err := e.StartCollective(&collective.Operation{
				Call:    coll.Call{Collective: coll.Reduce, Rank: r, Ranks: 2, Bytes: 1},
				Members: []int{0, 1}, Comm: 1, Tag: 1, Send: []byte{1}, Recv: make([]byte, 1),
				User: func(in, inout []byte) error {
					close(computing)
					<-goOn
					returned = true
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, o)
		}
		<-computing
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() {
			synctest.Wait()
			close(goOn)
		}()
		if _, err := ops[0].Await(ctx); err != nil && !errors.Is(err, context.Canceled) || !returned {
			t.Errorf("%v; the function has returned: %v", err, returned)
		}
		finish(t, ops[1])
	})
}
