package kmeans_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/appstest"
	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestSerial(t *testing.T) {
	for _, c := range []struct {
		name     string
		vectors  []int32
		clusters int
		o        kmeans.Options
		want     kmeans.Result
	}{
		// Computed by hand. The first centroids are 0 and 10. The means of 0, 1 and of 10, 12 are 0, after rounding,
		// and 11.
		{"a line", []int32{0, 1, 10, 12}, 2, kmeans.Options{Dimensions: 1},
			kmeans.Result{Centroids: []int32{0, 11}, Counts: []int32{2, 2}, Labels: []int32{0, 0, 1, 1},
				Norms: []int32{1}}},
		{"until nothing more than 1 moves", []int32{0, 1, 10, 12}, 2, kmeans.Options{Dimensions: 1, NormLimit: 1},
			kmeans.Result{Centroids: []int32{0, 11}, Counts: []int32{2, 2}, Labels: []int32{0, 0, 1, 1},
				Norms: []int32{1}}},
		// 5 is equally close to 0 and 10, so the lower cluster gets it. The means are 2 and 10, so the centroids move
		// by 4. Then 10 and 2 are unchanged.
		{"ties", []int32{0, 5, 10, 10}, 2, kmeans.Options{Dimensions: 1, NormLimit: 1},
			kmeans.Result{Centroids: []int32{2, 10}, Counts: []int32{2, 2}, Labels: []int32{0, 0, 1, 1},
				Norms: []int32{4, 0}}},
		{"an end before that", []int32{0, 5, 10, 10}, 2, kmeans.Options{Dimensions: 1, NormLimit: 1, Iterations: 1},
			kmeans.Result{Centroids: []int32{2, 10}, Counts: []int32{2, 2}, Labels: []int32{0, 0, 1, 1},
				Norms: []int32{4}}},
		// Both centroids are 7, so the second cluster has no vectors, and its centroid does not move.
		{"an empty cluster", []int32{7, -7, 7, -8}, 2, kmeans.Options{Dimensions: 1, Iterations: 1},
			kmeans.Result{Centroids: []int32{0, 7}, Counts: []int32{4, 0}, Labels: []int32{0, 0, 0, 0},
				Norms: []int32{49}}},
		{"a plane", []int32{0, 0, 3, 4, 100, 0, 100, 2}, 2, kmeans.Options{Dimensions: 2, NormLimit: 100},
			kmeans.Result{Centroids: []int32{1, 2, 100, 1}, Counts: []int32{2, 2}, Labels: []int32{0, 0, 1, 1},
				Norms: []int32{1 + 4 + 1}}},
		{"a norm beyond 32 bits", []int32{-100_000, 100_000}, 1, kmeans.Options{Dimensions: 1, Iterations: 1},
			kmeans.Result{Centroids: []int32{0}, Counts: []int32{2}, Labels: []int32{0, 0}, Norms: []int32{1<<31 - 1}}},
	} {
		got, err := kmeans.Serial(c.vectors, c.clusters, c.o)
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

// heaps returns random vectors in clusters.
func heaps(n, dimensions int) []int32 {
	r := rand.New(rand.NewPCG(uint64(n), 2))
	v := make([]int32, n*dimensions)
	for i := range v {
		v[i] = r.Int32N(8)*1000 + r.Int32N(700) - 4000
	}
	return v
}

func TestParallel(t *testing.T) {
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		for ranks := 1; ranks <= 5; ranks++ {
			for _, c := range []struct {
				vectors, clusters int
				o                 kmeans.Options
			}{
				{5, 5, kmeans.Options{}},
				{1003, 7, kmeans.Options{NormLimit: 1}}, // nothing divides evenly
				{2000, 150, kmeans.Options{Dimensions: 5, Iterations: 4}},
			} {
				t.Run(fmt.Sprintf("%v %d ranks %d", profile, ranks, c.vectors), func(t *testing.T) {
					parallel(t, ranks, profile, c.vectors, c.clusters, c.o)
				})
			}
		}
	}
}

func parallel(t *testing.T, n int, profile protocol.Profile, count, clusters int, o kmeans.Options) {
	ctx, vectors := appstest.TestContext(t), heaps(count, max(o.Dimensions, 3))
	want, err := kmeans.Serial(vectors, clusters, o)
	if err != nil {
		t.Fatal(err)
	}
	var got *kmeans.Result
	var ranks errgroup.Group
	for _, world := range appstest.Worlds(t, n, profile) {
		ranks.Go(func() (err error) {
			if world.Rank() == kmeans.Root {
				got, err = kmeans.Host(ctx, world, vectors, clusters, o)
				return err
			}
			o := o
			o.Words = len(vectors)
			return kmeans.Work(ctx, world, o)
		})
	}
	if err := ranks.Wait(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestOptions(t *testing.T) {
	ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.CloudFPGA)
	four := heaps(4, 3)
	for name, c := range map[string]struct {
		vectors  []int32
		clusters int
		o        kmeans.Options
	}{
		"half a vector":         {four[:10], 2, kmeans.Options{}},
		"no clusters":           {four, 0, kmeans.Options{}},
		"more clusters":         {four, 5, kmeans.Options{}},
		"fewer than ranks":      {four[:6], 1, kmeans.Options{}},
		"long vectors":          {four, 1, kmeans.Options{Dimensions: kmeans.MaxDimensions + 1}},
		"negative dimensions":   {four, 1, kmeans.Options{Dimensions: -1}},
		"negative iterations":   {four, 1, kmeans.Options{Iterations: -1}},
		"a negative norm limit": {four, 1, kmeans.Options{NormLimit: -1}},
	} {
		if _, err := kmeans.Host(ctx, all[0], c.vectors, c.clusters, c.o); !errors.Is(err, kmeans.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []kmeans.Options{{}, {Words: -1}, {Words: 1, Dimensions: -1}} {
		if err := kmeans.Work(ctx, all[1], o); !errors.Is(err, kmeans.ErrOptions) {
			t.Errorf("worker with %+v: %v", o, err)
		}
	}
}

// TestEnds checks that both sides return when the context ends, with an error about the wait.
func TestEnds(t *testing.T) {
	all := appstest.Worlds(t, 2, protocol.CloudFPGA)
	cause := errors.New("enough")
	ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
	defer stop()
	_, hostErr := kmeans.Host(ctx, all[0], heaps(4, 3), 1, kmeans.Options{})
	for name, err := range map[string]error{"host": hostErr,
		"worker": kmeans.Work(ctx, all[1], kmeans.Options{Words: 12})} {
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "has waited") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Also during its own computation.
	if _, err := kmeans.Host(ctx, appstest.Worlds(t, 1, protocol.CloudFPGA)[0], heaps(4, 3), 1,
		kmeans.Options{}); !errors.Is(err, cause) {
		t.Errorf("alone: %v", err)
	}
}
