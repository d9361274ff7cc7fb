package kmeans_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/appstest"
	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// upstreamHost plays rank 0 of upstream's kmeans.cpp, as unrolled by its compiler with com_opt: 0. The centroids of
// each iteration are given, not computed. It returns the answers of the workers, by rank, in the order of the messages.
func upstreamHost(ctx context.Context, c *mpi.Comm, vectors []int32, each int, centroids [][]int32,
	norms []int32) ([][][]int32, error) {
	answers := make([][][]int32, c.Size())
	send := func(rank int, words []int32) error { return mpi.Send(ctx, c, words, rank, 0) }
	recv := func(rank, words int) error {
		buf := make([]int32, words)
		st, err := mpi.Recv(ctx, c, buf, rank, 0)
		if n := mpi.Count[int32](st); err == nil && n != words {
			err = fmt.Errorf("%d words instead of %d", n, words)
		}
		answers[rank] = append(answers[rank], buf)
		return err
	}
	walk := func(f func(rank int) error) (err error) {
		for rank := 1; rank < c.Size() && err == nil; rank++ {
			err = f(rank)
		}
		return err
	}
	if err := walk(func(rank int) error { return send(rank, vectors[rank*each*3:][:each*3]) }); err != nil {
		return nil, err
	}
	for i, k := range centroids {
		err := errors.Join(
			walk(func(rank int) error { return send(rank, k) }),
			walk(func(rank int) error { return recv(rank, len(k)) }),
			walk(func(rank int) error { return recv(rank, len(k)/3) }),
			walk(func(rank int) error { return send(rank, norms[i:i+1]) }))
		if err != nil {
			return nil, err
		}
	}
	return answers, walk(func(rank int) error { return recv(rank, each) })
}

func TestWorkersOfUpstreamsHost(t *testing.T) {
	// Rank 0 has the first two vectors.
	vectors := []int32{9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 10, 0, 0, 20, 0, 1}
	centroids := [][]int32{{0, 0, 0, 10, 0, 0}, {100, 0, 0, 20, 0, 0}, {4, 5, 6, 12, 0, 0}}
	want := [][][]int32{
		nil,
		{ // rank 1: 1 2 3 and 4 5 6
			{5, 7, 9, 0, 0, 0}, {2, 0},
			{0, 0, 0, 5, 7, 9}, {0, 2},
			{5, 7, 9, 0, 0, 0}, {2, 0},
			{0, 0},
		},
		{ // rank 2: 10 0 0 and 20 0 1
			{0, 0, 0, 30, 0, 1}, {0, 2},
			{0, 0, 0, 30, 0, 1}, {0, 2},
			{0, 0, 0, 30, 0, 1}, {0, 2},
			{1, 1},
		},
	}
	for name, c := range map[string]struct {
		o     kmeans.Options
		norms []int32
	}{
		"norm":       {kmeans.Options{}, []int32{1000, 11, 10}},
		"iterations": {kmeans.Options{Iterations: 3}, []int32{1000, 1000, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.CloudFPGA)
			var ranks errgroup.Group
			for _, world := range all[1:] {
				ranks.Go(func() error {
					o := c.o
					o.Words = 6
					return kmeans.Work(ctx, world, o)
				})
			}
			got, err := upstreamHost(ctx, all[0], vectors, 2, centroids, c.norms)
			if err = errors.Join(err, ranks.Wait()); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v, want\n%v", got, want)
			}
		})
	}
}

// TestUnexpectedMessages checks the errors for messages that do not match the options.
func TestUnexpectedMessages(t *testing.T) {
	for name, c := range map[string]struct {
		messages [][]int32
		want     error
	}{
		"half a vector":       {[][]int32{{1, 2, 3, 4}}, kmeans.ErrMessage},
		"no vector":           {[][]int32{{}}, kmeans.ErrMessage},
		"half a centroid":     {[][]int32{{1, 2, 3}, {1}}, kmeans.ErrMessage},
		"too many vectors":    {[][]int32{make([]int32, 15)}, mpi.ErrTruncate},
		"other centroids":     {[][]int32{{1, 2, 3}, {1, 2, 3}, {50}, {1, 2, 3, 4, 5, 6}}, kmeans.ErrMessage},
		"a norm of two words": {[][]int32{{1, 2, 3}, {1, 2, 3}, {1, 2}}, mpi.ErrTruncate},
		"a norm of no words":  {[][]int32{{1, 2, 3}, {1, 2, 3}, {}}, kmeans.ErrMessage},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, all := appstest.TestContext(t), appstest.Worlds(t, 2, protocol.Extended)
			for _, m := range c.messages {
				if err := mpi.Send(ctx, all[0], m, 1, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := kmeans.Work(ctx, all[1], kmeans.Options{Words: 12}); !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("short sums", func(t *testing.T) {
		ctx, all := appstest.TestContext(t), appstest.Worlds(t, 2, protocol.Extended)
		if err := mpi.Send(ctx, all[1], []int32{1, 2}, 0, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := kmeans.Host(ctx, all[0], heaps(4, 3), 1, kmeans.Options{}); !errors.Is(err, kmeans.ErrMessage) {
			t.Errorf("%v", err)
		}
	})
}
