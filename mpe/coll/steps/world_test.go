package steps_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/check"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/coll/steps"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// patience is how long a test may take. It is for calls that hang.
const patience = 60 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	return ctx
}

// world is devices that carry whatever a Poster can.
func world(t *testing.T, n int, opts mpitest.Options) []mpe.Device {
	t.Helper()
	return mpitest.World(opts)(t, n)
}

// compose is an operation that is associative, but not commutative: an element is an
// affine function x → ax + b of integers modulo 256.
func compose(in, inout []byte) {
	for i := 0; i+1 < len(inout); i += 2 {
		a, b := in[i], in[i+1]
		inout[i], inout[i+1] = a*inout[i], a*inout[i+1]+b
	}
}

// eachRank makes the calls of all ranks.
func eachRank(c coll.Call) []coll.Call {
	calls := make([]coll.Call, c.Ranks)
	for r := range calls {
		calls[r] = c
		calls[r].Rank = r
	}
	return calls
}

// members are the ranks of the world, backwards, so that the two are not mixed up.
func members(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = n - 1 - i
	}
	return list
}

// buffers are those of all ranks, with random content.
func buffers(rng *rand.Rand, calls []coll.Call) []check.Data {
	data := make([]check.Data, len(calls))
	for r := range calls {
		send, recv := check.Buffers(&calls[r])
		data[r] = check.Data{Send: make([]byte, send), Recv: make([]byte, recv)}
		for i := range data[r].Send {
			data[r].Send[i] = byte(rng.Uint32())
		}
		for i := range data[r].Recv {
			data[r].Recv[i] = byte(rng.Uint32())
		}
	}
	return data
}

// collective is the call of a rank, to be started on the device of Members[rank].
func collective(c coll.Call, d check.Data) *mpe.Collective {
	x := &mpe.Collective{Call: c, Members: members(c.Ranks), Comm: 7, Tag: 1000, Send: d.Send, Recv: d.Recv}
	if c.Ordered {
		x.User = compose
	} else {
		x.Op, x.Type = op.Sum, op.Int16
	}
	return x
}

// run carries the calls of all ranks out and waits for them.
func run(ctx context.Context, devices []mpe.Device, calls []*mpe.Collective) []error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for r, c := range calls {
		wg.Go(func() {
			x, err := steps.Start(devices[c.Members[r]], c)
			if err == nil {
				_, err = x.Wait(ctx)
				x.Free()
			}
			errs[r] = err
		})
	}
	wg.Wait()
	return errs
}
