package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/examples/internal/demotest"
)

func TestKmeans(t *testing.T) {
	for ranks := 1; ranks <= 5; ranks++ {
		for _, args := range []string{"", "-profile extended", "-dimensions 8 -iterations 3 -norm-limit 1 -seed 7"} {
			var got struct {
				Right  bool
				Result result
			}
			args += fmt.Sprintf(" -json -vectors 501 -clusters 5 -ranks %d", ranks)
			o := demotest.Run(t, info, new(program), strings.Fields(args)...)
			o.JSON(t, &got)
			r, all := got.Result, int32(0)
			for _, c := range r.Clusters {
				all += c.Vectors
			}
			if o.Code != 0 || !got.Right || r.Vectors != 501 || len(r.Clusters) != 5 || all != 501 || len(r.Norms) == 0 || r.Parallel <= 0 {
				t.Errorf("%s: %d %+v", args, o.Code, got)
			}
			if short := strings.Contains(args, "-iterations 3"); r.Converged == short || short && len(r.Norms) != 3 {
				t.Errorf("%s: converged: %v, norms %v", args, r.Converged, r.Norms)
			}
		}
	}
}

func TestTable(t *testing.T) {
	demotest.Run(t, info, new(program), "-vectors", "20", "-clusters", "1", "-dimensions", "7").Right(t,
		"20 vectors of 7 dimensions, 1 cluster, converged after 2 iterations\n", "      0       20 ", " ...\n", "0 of 20 labels and 0 of 1 clusters differ\n")
	demotest.Run(t, info, new(program), "-vectors", "20", "-clusters", "1", "-iterations", "1").Right(t, "stopped after 1 iteration\n")
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-vectors 4", "-vectors 4"},
		{"-vectors 1000001", "-vectors 1000001"},
		{"-vectors 10 -clusters 11", "-clusters 11"},
		{"-clusters 0", "-clusters 0"},
		{"-dimensions 0", "-dimensions 0"},
		{"-dimensions 1025", "-dimensions 1025"},
		{"-vectors 70000 -dimensions 1000", "70000000 numbers"},
		{"-iterations 0", "-iterations 0"},
		{"-norm-limit 0", "-norm-limit 0"},
		{"-seed -1", "-1"},
	} {
		demotest.Run(t, info, new(program), strings.Fields(c.args)...).Refused(t, c.says)
	}
}

func TestStandins(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		const worker = "run: standin, kernel: kmeans"
		demotest.Start(t, "peer: software", worker, worker, worker, worker).InProcess(t, 0)
		demotest.Run(t, info, new(program), "-vectors", "3001").Right(t, "5 ranks", "0 of 3001 labels")
	})
	t.Run("attached, with options", func(t *testing.T) {
		const worker = "run: standin, kernel: kmeans, kernel_options: {words: 400, dimensions: 2, iterations: 7, norm_limit: 1}"
		demotest.Start(t, "run: host", worker, worker).Attach(t)
		demotest.Run(t, info, new(program), "-vectors", "600", "-dimensions", "2", "-iterations", "7", "-norm-limit", "1").Right(t, "3 ranks", "0 of 600 labels")
	})
}

func TestWrong(t *testing.T) {
	same := kmeans.Result{Centroids: []int32{1, 2, 3, 4}, Counts: []int32{1, 1}, Labels: []int32{0, 1}, Norms: []int32{5, 0}}
	for name, c := range map[string]struct {
		other kmeans.Result
		wrong string
	}{
		"same":     {same, ""},
		"labels":   {kmeans.Result{Centroids: same.Centroids, Counts: same.Counts, Labels: []int32{1, 0}, Norms: same.Norms}, "2 labels and 0 clusters"},
		"centroid": {kmeans.Result{Centroids: []int32{1, 2, 3, 5}, Counts: same.Counts, Labels: same.Labels, Norms: same.Norms}, "0 labels and 1 clusters"},
		"counts":   {kmeans.Result{Centroids: same.Centroids, Counts: []int32{2, 0}, Labels: same.Labels, Norms: same.Norms}, "0 labels and 2 clusters"},
		"norms":    {kmeans.Result{Centroids: same.Centroids, Counts: same.Counts, Labels: same.Labels, Norms: []int32{5}}, "other norms: true"},
	} {
		r := result{Dimensions: 2}
		r.compare(&c.other, &same)
		if w := r.Wrong(); (w == "") != (c.wrong == "") || !strings.Contains(w, c.wrong) {
			t.Errorf("%s: %q, want %q", name, w, c.wrong)
		}
	}
}
