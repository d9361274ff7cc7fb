// Package colltest makes collective calls of every kind, by every algorithm, and checks their results. It is for tests,
// and must never be part of anything else.
package colltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Case is a collective call of all ranks, with the buffers of each rank and the expected results. A nil result is not
// checked.
type Case struct {
	// Call is the call of rank 0. Algorithm is the algorithm of all ranks; if it is empty, the devices choose.
	Call      coll.Call
	Algorithm string
	// Send and Recv are the buffers of all ranks.
	Send, Recv [][]byte
	expected   [][]byte
}

// NewCase returns a call whose blocks consist of n int32 elements. Reductions are sums. The value of an element depends
// on its rank and its index.
func NewCase(of coll.Collective, algorithm string, ranks, root, n int) *Case {
	c := &Case{Algorithm: algorithm, Call: coll.Call{Collective: of, Ranks: ranks, Root: root, Bytes: 4 * n, Elem: 4}}
	for r := range ranks {
		if r != root {
			c.Call.FPGAs = append(c.Call.FPGAs, r)
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
		c.Send, c.Recv, c.expected = append(c.Send, send), append(c.Recv, recv), append(c.expected, want)
	}
	return c
}

// Start posts a rank's call in communicator 1, with the given tag as its number.
func (c *Case) Start(device mpe.Device, tag int) (mpe.Op, error) {
	r := device.Rank()
	call := c.Call
	call.Rank, call.FPGAs = r, nil
	x := collective.Operation{Call: call, Comm: 1, Tag: tag, Send: c.Send[r], Recv: c.Recv[r], Op: op.Sum,
		Type: op.Int32, Algorithm: c.Algorithm}
	for m := range call.Ranks {
		x.Members = append(x.Members, m)
	}
	return device.StartCollective(&x)
}

// Check compares a rank's result.
func (c *Case) Check(rank int) error {
	if want := c.expected[rank]; want != nil && !bytes.Equal(c.Recv[rank], want) {
		return fmt.Errorf("%v by %q, %d ranks, root %d, %d bytes: rank %d has a wrong result", c.Call.Collective,
			c.Algorithm, c.Call.Ranks, c.Call.Root, c.Call.Bytes, rank)
	}
	return nil
}

// Run makes all calls on every rank, in order. Each call must complete within the given time.
func Run(ranks []mpe.Device, cases []*Case, within time.Duration) error {
	failed := make([]error, len(ranks))
	var all sync.WaitGroup
	for r, e := range ranks {
		all.Go(func() {
			for i, c := range cases {
				o, err := c.Start(e, i+1)
				if err == nil {
					ctx, stop := context.WithTimeout(context.Background(), within)
					_, err = o.Await(ctx)
					stop()
					o.Free()
				}
				if err == nil {
					err = c.Check(r)
				}
				if err != nil {
					failed[r] = fmt.Errorf("rank %d, %v by %q: %w", r, c.Call.Collective, c.Algorithm, err)
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// AllCases returns calls of all collectives, by each algorithm that supports the call and by the algorithm that the
// devices choose. lengths lists the block lengths to use, in elements. shared is the size in bytes of the ranks' shared
// buffers.
func AllCases(ranks int, roots, lengths []int, shared int) (cases []*Case) {
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		for _, algorithm := range coll.Algorithms(of) {
			for i, root := range roots {
				rooted := of == coll.Bcast || of == coll.Reduce || of == coll.Gather || of == coll.Scatter
				if i > 0 && (!rooted || slices.Contains(roots[:i], root)) {
					continue
				}
				lengths := slices.Clip(lengths)
				switch { // longer messages take another path
				case algorithm.Name == "atomic":
					lengths = append(lengths, 20_000)
				case algorithm.Shares && (of <= coll.Allreduce || of >= coll.Scan):
					lengths = append(lengths, shared/4+4321)
				case algorithm.Shares:
					lengths = append(lengths, (shared/2+4321)/ranks)
				}
				for j, n := range lengths {
					if of == coll.Barrier && j > 0 {
						continue
					}
					c := NewCase(of, algorithm.Name, ranks, root, n)
					if algorithm.Segmented && n > 100 {
						c.Call.Segment = 400
					}
					probe := c.Call
					probe.Flows, probe.Shared = true, shared
					if algorithm.Name != "tree" && algorithm.CheckSupport(probe) == nil {
						cases = append(cases, c)
					}
				}
			}
		}
		cases = append(cases, NewCase(of, "", ranks, roots[len(roots)-1], lengths[len(lengths)-1]))
	}
	return cases
}
