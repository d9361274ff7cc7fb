package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// maxVectors is how many there are at most: those of upstream's example.
const maxVectors = 1_000_000

// maxWords bounds a message: 256 MiB, the longest that a rank takes.
const maxWords = 1 << 26

type program struct {
	vectors, clusters                 int
	dimensions, iterations, normLimit int
	seed                              uint64
}

// Flags implements demo.Example.
func (p *program) Flags(f *flag.FlagSet) {
	f.IntVar(&p.vectors, "vectors", 20_000, "how many vectors")
	f.IntVar(&p.clusters, "clusters", 8, "how many clusters")
	f.IntVar(&p.dimensions, "dimensions", kmeans.DefaultDimensions, "numbers in a vector")
	f.IntVar(&p.iterations, "iterations", kmeans.DefaultIterations, "how many iterations at most")
	f.IntVar(&p.normLimit, "norm-limit", kmeans.DefaultNormLimit, "end when the centroids move by no more, squares summed up")
	f.Uint64Var(&p.seed, "seed", 1, "which vectors")
}

// Check implements demo.Example.
func (p *program) Check(ranks int) error {
	for _, v := range []struct {
		flag            string
		value, low, end int
	}{
		{"vectors", p.vectors, ranks, maxVectors},
		{"clusters", p.clusters, 1, p.vectors},
		{"dimensions", p.dimensions, 1, kmeans.MaxDimensions},
		{"iterations", p.iterations, 1, math.MaxInt32},
		{"norm-limit", p.normLimit, 1, math.MaxInt32},
	} {
		if v.value < v.low || v.value > v.end {
			return fmt.Errorf("-%s %d: %d to %d are possible", v.flag, v.value, v.low, v.end)
		}
	}
	if words := p.vectors * p.dimensions; words > maxWords {
		return fmt.Errorf("-vectors %d and -dimensions %d make %d numbers: up to %d are possible", p.vectors, p.dimensions, words, maxWords)
	}
	return nil
}

// Run implements demo.Example.
func (p *program) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	o := kmeans.Options{
		Dimensions: p.dimensions, Iterations: p.iterations, NormLimit: p.normLimit,
		Words: max(p.vectors, p.clusters) * p.dimensions,
	}
	if world.Rank() != kmeans.Root {
		return nil, kmeans.Work(ctx, world, o)
	}
	vectors := makeVectors(p.vectors, p.dimensions, p.clusters, p.seed)
	start := time.Now()
	got, err := kmeans.Host(ctx, world, vectors, p.clusters, o)
	if err != nil {
		return nil, err
	}
	r := &result{Vectors: p.vectors, Dimensions: p.dimensions, Norms: got.Norms, Parallel: demo.Millis(time.Since(start))}
	start = time.Now()
	want, err := kmeans.Serial(vectors, p.clusters, o)
	if err != nil {
		return nil, err
	}
	r.Serial = demo.Millis(time.Since(start))
	for i := range p.clusters {
		r.Clusters = append(r.Clusters, cluster{got.Counts[i], got.Centroids[i*p.dimensions:][:p.dimensions]})
	}
	r.Converged = int(got.Norms[len(got.Norms)-1]) <= p.normLimit
	r.compare(got, want)
	return r, nil
}

type result struct {
	Vectors    int       `json:"vectors"`
	Dimensions int       `json:"dimensions"`
	Clusters   []cluster `json:"clusters"`
	// Norms are how far the centroids moved in each iteration.
	Norms     []int32 `json:"norms"`
	Converged bool    `json:"converged"`
	// Parallel and Serial are what all iterations took, in milliseconds.
	Parallel float64 `json:"ms"`
	Serial   float64 `json:"serial_ms"`
	// WrongLabels, WrongClusters and WrongNorms differ from those of the
	// serial computation.
	WrongLabels   int  `json:"wrong_labels"`
	WrongClusters int  `json:"wrong_clusters"`
	WrongNorms    bool `json:"wrong_norms"`
}

type cluster struct {
	Vectors  int32   `json:"vectors"`
	Centroid []int32 `json:"centroid"`
}

// compare counts what differs.
func (r *result) compare(got, want *kmeans.Result) {
	for i, label := range got.Labels {
		if label != want.Labels[i] {
			r.WrongLabels++
		}
	}
	d := r.Dimensions
	for i, n := range got.Counts {
		if n != want.Counts[i] || !slices.Equal(got.Centroids[i*d:][:d], want.Centroids[i*d:][:d]) {
			r.WrongClusters++
		}
	}
	r.WrongNorms = !slices.Equal(got.Norms, want.Norms)
}

// Table implements demo.Result.
func (r *result) Table(w io.Writer) {
	how := "stopped"
	if r.Converged {
		how = "converged"
	}
	fmt.Fprintf(w, "%s of %s, %s, %s after %s\n\nCLUSTER  VECTORS  CENTROID\n",
		demo.Count(r.Vectors, "vector"), demo.Count(r.Dimensions, "dimension"), demo.Count(len(r.Clusters), "cluster"),
		how, demo.Count(len(r.Norms), "iteration"))
	for i, c := range r.Clusters {
		fmt.Fprintf(w, "%7d %8d  %s\n", i, c.Vectors, coordinates(c.Centroid))
	}
	fmt.Fprintf(w, "\n%.3f ms; on one processor %.3f ms; %d of %d labels and %d of %d clusters differ\n",
		r.Parallel, r.Serial, r.WrongLabels, r.Vectors, r.WrongClusters, len(r.Clusters))
}

// coordinates are the first of a vector.
func coordinates(v []int32) string {
	const most = 6
	var b strings.Builder
	for _, x := range v[:min(len(v), most)] {
		fmt.Fprintf(&b, "%6d", x)
	}
	if len(v) > most {
		b.WriteString(" ...")
	}
	return b.String()
}

// Wrong implements demo.Result.
func (r *result) Wrong() string {
	if r.WrongLabels == 0 && r.WrongClusters == 0 && !r.WrongNorms {
		return ""
	}
	return fmt.Sprintf("%d labels and %d clusters differ from the serial computation (other norms: %v)", r.WrongLabels, r.WrongClusters, r.WrongNorms)
}
