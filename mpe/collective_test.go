package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// collectiveCase is a call of all ranks, with the buffers of each, and what is to be in
// their receive buffers in the end; nil is anything.
type collectiveCase struct {
	call       coll.Call
	algorithm  string
	send, recv [][]byte
	want       [][]byte
}

// newCase makes a call of int32 sums, with blocks of n elements. Data is small numbers,
// different everywhere.
func newCase(of coll.Collective, algorithm string, ranks, root, n int) *collectiveCase {
	c := &collectiveCase{algorithm: algorithm, call: coll.Call{Collective: of, Ranks: ranks, Root: root, Bytes: 4 * n, Elem: 4}}
	for r := range ranks {
		if r != root {
			c.call.FPGAs = append(c.call.FPGAs, r)
		}
	}
	value := func(rank, i int) int32 { return int32(1000*rank + 7*i + 1) }
	vector := func(n int, f func(i int) int32) []byte {
		b := make([]byte, 4*n)
		for i := range n {
			v := f(i)
			b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		}
		return b
	}
	mine := func(rank, n int) []byte { return vector(n, func(i int) int32 { return value(rank, i) }) }
	sum := func(from, to, first, n int) []byte {
		return vector(n, func(i int) (s int32) {
			for r := from; r < to; r++ {
				s += value(r, first+i)
			}
			return s
		})
	}
	var everything []byte
	for r := range ranks {
		everything = append(everything, mine(r, n)...)
	}
	for r := range ranks {
		var send, recv, want []byte
		switch of {
		case coll.Bcast:
			recv, want = make([]byte, 4*n), mine(root, n)
			if r == root {
				recv = mine(root, n)
			}
		case coll.Reduce:
			send = mine(r, n)
			if r == root {
				recv, want = make([]byte, 4*n), sum(0, ranks, 0, n)
			}
		case coll.Allreduce:
			send, recv, want = mine(r, n), make([]byte, 4*n), sum(0, ranks, 0, n)
		case coll.Gather:
			send = mine(r, n)
			if r == root {
				recv, want = make([]byte, 4*n*ranks), everything
			}
		case coll.Scatter:
			recv, want = make([]byte, 4*n), everything[4*n*r:4*n*(r+1)]
			if r == root {
				send = everything
			}
		case coll.Allgather:
			send, recv, want = mine(r, n), make([]byte, 4*n*ranks), everything
		case coll.Alltoall:
			send, recv = mine(r, n*ranks), make([]byte, 4*n*ranks)
			for from := range ranks {
				want = append(want, mine(from, n*ranks)[4*n*r:4*n*(r+1)]...)
			}
		case coll.ReduceScatter:
			send, recv, want = mine(r, n*ranks), make([]byte, 4*n), sum(0, ranks, r*n, n)
		case coll.Scan:
			send, recv, want = mine(r, n), make([]byte, 4*n), sum(0, r+1, 0, n)
		case coll.Exscan:
			send, recv = mine(r, n), make([]byte, 4*n)
			if r > 0 {
				want = sum(0, r, 0, n)
			}
		}
		c.send, c.recv, c.want = append(c.send, send), append(c.recv, recv), append(c.want, want)
	}
	return c
}

// start posts the call of a rank.
func (c *collectiveCase) start(e *mpe.Engine, tag int) (mpe.Op, error) {
	r := e.Rank()
	call := c.call
	call.Rank, call.FPGAs = r, nil
	x := mpe.Collective{Call: call, Comm: 1, Tag: tag, Send: c.send[r], Recv: c.recv[r], Op: op.Sum, Type: op.Int32, Algorithm: c.algorithm}
	for m := range call.Ranks {
		x.Members = append(x.Members, m)
	}
	return e.StartCollective(&x)
}

// check compares a rank's result.
func (c *collectiveCase) check(rank int) error {
	if want := c.want[rank]; want != nil && !bytes.Equal(c.recv[rank], want) {
		return fmt.Errorf("%v by %q, %d ranks, root %d, %d bytes: rank %d has a wrong result", c.call.Collective, c.algorithm, c.call.Ranks, c.call.Root, c.call.Bytes, rank)
	}
	return nil
}

// runCases has every rank make all the calls, one after another.
func runCases(t *testing.T, engines []*mpe.Engine, cases []*collectiveCase) {
	t.Helper()
	failed := make([]error, len(engines))
	var all sync.WaitGroup
	for r, e := range engines {
		all.Go(func() {
			for i, c := range cases {
				o, err := c.start(e, i+1)
				if err == nil {
					ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
					_, err = o.Wait(ctx)
					stop()
					o.Free()
				}
				if err == nil {
					err = c.check(r)
				}
				if err != nil {
					failed[r] = fmt.Errorf("rank %d, %v by %q: %w", r, c.call.Collective, c.algorithm, err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
}

// casesFor makes calls of all collectives by all algorithms that can.
func casesFor(ranks int, roots, lengths []int, flows bool) (cases []*collectiveCase) {
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		for _, a := range coll.Algorithms(of) {
			for i, root := range roots {
				rooted := of == coll.Bcast || of == coll.Reduce || of == coll.Gather || of == coll.Scatter
				if i > 0 && (!rooted || slices.Contains(roots[:i], root)) {
					continue
				}
				for j, n := range lengths {
					if of == coll.Barrier && j > 0 {
						continue
					}
					c := newCase(of, a.Name, ranks, root, n)
					if a.Segmented && n > 100 {
						c.call.Segment = 400
					}
					probe := c.call
					probe.Flows = flows
					if a.Name != "tree" && a.Fits(probe) == nil {
						cases = append(cases, c)
					}
				}
			}
		}
		cases = append(cases, newCase(of, "", ranks, roots[len(roots)-1], lengths[len(lengths)-1]))
	}
	return cases
}

func TestCollectives(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 5, 7, 8, 13} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, ranks, nil)
			defer c.close()
			runCases(t, c.engines, casesFor(ranks, []int{0, ranks / 2, ranks - 1}, []int{0, 1, 5, 1200}, true))
		})
	}
}

// Without eager messages everything is announced and flows.
func TestCollectivesRendezvous(t *testing.T) {
	for _, ranks := range []int{2, 3, 6, 9} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, ranks, func(x *extended.Config) { x.EagerLimit, x.MaxPayload = -1, 1000 })
			defer c.close()
			runCases(t, c.engines, casesFor(ranks, []int{0, ranks - 1}, []int{1, 5, 3000}, true))
		})
	}
}
