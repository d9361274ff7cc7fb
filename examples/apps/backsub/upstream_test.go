package backsub_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/appstest"
	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The code that upstream's compiler generates with com_opt: 0, according to docs/examples.md, for 4 unknowns on 3
// ranks: loops over the ranks, with one call at a time. The unknowns are 1, 2, 3, 4.
var (
	upstreamMatrix = backsub.Matrix[float32]{Size: 4,
		Numbers: []float32{2, 3, 4, 5, 0, 6, 7, 8, 0, 0, 9, 10, 0, 0, 0, 11}}
	upstreamSides  = []float32{2 + 6 + 12 + 20, 12 + 21 + 32, 27 + 40, 44}
	upstreamResult = []float32{1, 2, 3, 4}
)

// upstreamHost plays rank 0, which has rows 0 and 3.
func upstreamHost(ctx context.Context, c *mpi.Comm) error {
	return errors.Join(
		appstest.Send[int32](ctx, c, 1, 4, 4, 0), appstest.Send[int32](ctx, c, 2, 4, 4, 0),
		appstest.Send[float32](ctx, c, 1, 6, 7, 8, 0, 0), appstest.Send[float32](ctx, c, 2, 9, 10, 0, 0, 0),
		appstest.Send[float32](ctx, c, 1, upstreamSides[1], 0), appstest.Send[float32](ctx, c, 2, upstreamSides[2], 0),
		appstest.Send[float32](ctx, c, 1, 4), appstest.Send[float32](ctx, c, 2, 4),
		appstest.ExpectMessage[float32](ctx, c, 2, 3),
		appstest.ExpectMessage[float32](ctx, c, 1, 2),
		appstest.Send[float32](ctx, c, 1, 1), appstest.Send[float32](ctx, c, 2, 1),
		appstest.ExpectMessage[float32](ctx, c, 1, 2, 0), appstest.ExpectMessage[float32](ctx, c, 2, 3, 0))
}

func TestWorkersOfUpstreamsHost(t *testing.T) {
	for _, flat := range []bool{false, true} {
		ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.CloudFPGA)
		var ranks errgroup.Group
		for _, world := range all[1:] {
			ranks.Go(func() error {
				return backsub.Work[float32](ctx, world,
					backsub.Options{Words: 5, Unrolled: flat})
			})
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
		c := all[1]
		return errors.Join(appstest.ExpectMessage[int32](ctx, c, 0, 4, 4, 0),
			appstest.ExpectMessage[float32](ctx, c, 0, 6, 7, 8, 0, 0),
			appstest.ExpectMessage[float32](ctx, c, 0, upstreamSides[1], 0),
			appstest.ExpectMessage[float32](ctx, c, 0, 4), appstest.ExpectMessage[float32](ctx, c, 2, 3),
			appstest.Send[float32](ctx, c, 0, 2), appstest.Send[float32](ctx, c, 2, 2),
			appstest.ExpectMessage[float32](ctx, c, 0, 1),
			appstest.Send[float32](ctx, c, 0, 2, 0))
	})
	ranks.Go(func() error {
		c := all[2]
		return errors.Join(appstest.ExpectMessage[int32](ctx, c, 0, 4, 4, 0),
			appstest.ExpectMessage[float32](ctx, c, 0, 9, 10, 0, 0, 0),
			appstest.ExpectMessage[float32](ctx, c, 0, upstreamSides[2], 0),
			appstest.ExpectMessage[float32](ctx, c, 0, 4), appstest.Send[float32](ctx, c, 0, 3),
			appstest.Send[float32](ctx, c, 1, 3),
			appstest.ExpectMessage[float32](ctx, c, 1, 2), appstest.ExpectMessage[float32](ctx, c, 0, 1),
			appstest.Send[float32](ctx, c, 0, 3, 0))
	})
	got, err := backsub.Host(ctx, all[0], &upstreamMatrix, upstreamSides, backsub.Options{})
	if err = errors.Join(err, ranks.Wait()); err != nil || !slices.Equal(got.X, upstreamResult) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestUnexpectedMessages checks the errors for invalid messages.
func TestUnexpectedMessages(t *testing.T) {
	for name, c := range map[string]struct {
		shape    []int32
		messages [][]float32
		want     error
	}{
		"no shape":         {[]int32{1, 4}, nil, backsub.ErrMessage},
		"a long shape":     {[]int32{1, 4, 0, 0}, nil, mpi.ErrTruncate},
		"no unknowns":      {[]int32{0, 4, 0}, nil, backsub.ErrMessage},
		"negative":         {[]int32{-1, 4, 0}, nil, backsub.ErrMessage},
		"many unknowns":    {[]int32{backsub.MaxSize + 1, 4, 0}, nil, backsub.ErrMessage},
		"doubles":          {[]int32{2, 8, 0}, nil, backsub.ErrMessage},
		"negative pace":    {[]int32{1, 4, -1}, nil, backsub.ErrMessage},
		"a slow pace":      {[]int32{1, 4, 1_000_001}, nil, backsub.ErrMessage},
		"more than fits":   {[]int32{6, 4, 0}, nil, backsub.ErrMessage}, // 6 + 4 + 2
		"half of the rows": {[]int32{4, 4, 0}, [][]float32{{1, 2, 3, 4}}, backsub.ErrMessage},
		"too many rows":    {[]int32{4, 4, 0}, [][]float32{{1, 2, 3, 4, 5, 6, 7}}, mpi.ErrTruncate},
		"one right side":   {[]int32{4, 4, 0}, [][]float32{{1, 2, 3, 4, 5, 6}, {1}}, backsub.ErrMessage},
		"two pivots":       {[]int32{3, 4, 0}, [][]float32{{1, 2, 3, 4}, {1, 2}, {1, 2}}, mpi.ErrTruncate},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, all := appstest.TestContext(t), appstest.Worlds(t, 2, protocol.CloudFPGA)
			ctx, stop := context.WithCancel(ctx)
			var host errgroup.Group
			host.Go(func() error {
				err := mpi.Send(ctx, all[0], c.shape, 1, 0)
				for _, m := range c.messages {
					if err == nil {
						err = mpi.Send(ctx, all[0], m, 1, 0)
					}
				}
				return err
			})
			defer func() { _ = host.Wait() }() // ctx ends sends that the worker does not receive
			defer stop()
			if err := backsub.Work[float32](ctx, all[1], backsub.Options{Words: 8, Unrolled: true}); !errors.Is(err,
				c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
