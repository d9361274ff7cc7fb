package matvec_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/appstest"
	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The code that upstream's compiler generates with com_opt: 0, according to docs/examples.md, for 5 rows of 3 columns
// on 3 ranks: loops over the ranks, with one call at a time. There is no sixth row.
var (
	upstreamMatrix = matvec.Matrix[float32]{Rows: 5, Columns: 3,
		Numbers: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
	upstreamVector = []float32{1, 10, 100}
	upstreamResult = []float32{321, 654, 987, 1320, 1653}
)

func upstreamHost(ctx context.Context, c *mpi.Comm) error {
	return errors.Join(
		appstest.Send[int32](ctx, c, 1, 5, 3, 1, 4, 0), appstest.Send[int32](ctx, c, 2, 5, 3, 1, 4, 0),
		appstest.Send(ctx, c, 1, upstreamVector...), appstest.Send(ctx, c, 2, upstreamVector...),
		appstest.Send[float32](ctx, c, 1, 4, 5, 6), appstest.Send[float32](ctx, c, 2, 7, 8, 9),
		appstest.Send[float32](ctx, c, 1, 13, 14, 15), appstest.Send[float32](ctx, c, 2, 0, 0, 0),
		appstest.ExpectMessage[float32](ctx, c, 1, 654, 1653), appstest.ExpectMessage[float32](ctx, c, 2, 987, 0))
}

func TestWorkersOfUpstreamsHost(t *testing.T) {
	for _, flat := range []bool{false, true} {
		ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.CloudFPGA)
		var ranks errgroup.Group
		for _, world := range all[1:] {
			ranks.Go(func() error { return matvec.Work[float32](ctx, world, matvec.Options{Words: 3, Unrolled: flat}) })
		}
		if err := errors.Join(upstreamHost(ctx, all[0]), ranks.Wait()); err != nil {
			t.Error(err)
		}
	}
}

func TestHostOfUpstreamsWorkers(t *testing.T) {
	ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.CloudFPGA)
	var ranks errgroup.Group
	ranks.Go(func() error {
		return errors.Join(appstest.ExpectMessage[int32](ctx, all[1], 0, 5, 3, 1, 4, 0),
			appstest.ExpectMessage(ctx, all[1], 0, upstreamVector...),
			appstest.ExpectMessage[float32](ctx, all[1], 0, 4, 5, 6), appstest.ExpectMessage[float32](ctx, all[1], 0, 13, 14,
				15),
			appstest.Send[float32](ctx, all[1], 0, 654, 1653))
	})
	ranks.Go(func() error {
		return errors.Join(appstest.ExpectMessage[int32](ctx, all[2], 0, 5, 3, 1, 4, 0),
			appstest.ExpectMessage(ctx, all[2], 0, upstreamVector...),
			appstest.ExpectMessage[float32](ctx, all[2], 0, 7, 8, 9), appstest.ExpectMessage[float32](ctx, all[2], 0, 0, 0, 0),
			appstest.Send[float32](ctx, all[2], 0, 987, 0))
	})
	got, err := matvec.Host(ctx, all[0], &upstreamMatrix, upstreamVector, matvec.Options{})
	if err = errors.Join(err, ranks.Wait()); err != nil || !slices.Equal(got, upstreamResult) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestUnexpectedMessages checks the errors for invalid messages.
func TestUnexpectedMessages(t *testing.T) {
	for name, c := range map[string]struct {
		shape []int32
		x     []float32
		want  error
	}{
		"no shape":          {[]int32{1, 1, 1, 4}, nil, matvec.ErrMessage},
		"a long shape":      {[]int32{1, 1, 1, 4, 0, 0}, nil, mpi.ErrTruncate},
		"no rows":           {[]int32{0, 1, 1, 4, 0}, nil, matvec.ErrMessage},
		"no columns":        {[]int32{1, 0, 1, 4, 0}, nil, matvec.ErrMessage},
		"negative":          {[]int32{-1, -1, -1, 4, 0}, nil, matvec.ErrMessage},
		"many rows":         {[]int32{matvec.MaxSize + 1, 1, 1, 4, 0}, nil, matvec.ErrMessage},
		"many columns":      {[]int32{1, matvec.MaxSize + 1, 1, 4, 0}, nil, matvec.ErrMessage},
		"none at a time":    {[]int32{1, 1, 0, 4, 0}, nil, matvec.ErrMessage},
		"more than a share": {[]int32{3, 1, 3, 4, 0}, nil, matvec.ErrMessage},
		"doubles":           {[]int32{1, 1, 1, 8, 0}, nil, matvec.ErrMessage},
		"negative pace":     {[]int32{1, 1, 1, 4, -1}, nil, matvec.ErrMessage},
		"a slow pace":       {[]int32{1, 1, 1, 4, 1_000_001}, nil, matvec.ErrMessage},
		"more than fits":    {[]int32{6, 7, 3, 4, 0}, nil, matvec.ErrMessage},
		"half a vector":     {[]int32{3, 2, 1, 4, 0}, []float32{1}, matvec.ErrMessage},
		"a vector too long": {[]int32{3, 2, 1, 4, 0}, []float32{1, 2, 3}, mpi.ErrTruncate},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, all := appstest.TestContext(t), appstest.Worlds(t, 2, protocol.CloudFPGA)
			ctx, stop := context.WithCancel(ctx)
			var host errgroup.Group
			host.Go(func() error {
				err := mpi.Send(ctx, all[0], c.shape, 1, 0)
				if err == nil && c.x != nil {
					err = mpi.Send(ctx, all[0], c.x, 1, 0)
				}
				return err
			})
			defer func() { _ = host.Wait() }() // ctx ends sends that the worker does not receive
			defer stop()
			if err := matvec.Work[float32](ctx, all[1], matvec.Options{Words: 20, Unrolled: true}); !errors.Is(err,
				c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
