package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// example is one of upstream's examples with collective calls, and the output of its rank 0.
type example struct {
	name string
	// ours runs a rank on any implementation of the collective calls. Rank 0 returns the output of the program.
	ours func(ctx context.Context, world *mpi.Comm, c collectives[int32]) (any, error)
	// args returns the program's arguments. read parses its output.
	args func(t *testing.T) []string
	read func(t *testing.T, out string) any
	want func(t *testing.T, ranks int) any
}

var jacobiExample = example{
	name: "jacobi2d-col",
	ours: func(ctx context.Context, world *mpi.Comm, c collectives[int32]) (any, error) {
		grid := new(jacobi.Grid[int32])
		if world.Rank() == 0 {
			grid = jacobi.NewGrid[int32](jacobiSize, jacobiBorder)
		}
		err := jacobiRank(ctx, world, c, grid)
		return grid.Cells, err
	},
	args: func(*testing.T) []string { return nil },
	read: func(t *testing.T, out string) any {
		return printedGrid(t, out, 1) // a line begins with its number
	},
	want: func(*testing.T, int) any { return serialJacobi(jacobiSize) },
}

var kmeansExample = example{
	name: "kmeans",
	ours: func(ctx context.Context, world *mpi.Comm, c collectives[int32]) (any, error) {
		var all []int32
		if world.Rank() == 0 {
			all = kmeansInput()
		}
		return kmeansRank(ctx, world, c, all)
	},
	args: kmeansFile,
	read: printedKmeans,
	want: func(t *testing.T, ranks int) any { return serialKmeans(t, ranks) },
}

// serialJacobi returns the cells after all iterations.
func serialJacobi(size int) []int32 {
	grid := jacobi.NewGrid[int32](size, jacobiBorder)
	jacobi.Serial(grid, jacobiIterations)
	return grid.Cells
}

// printedGrid parses the last output of upstream's print_array, without the first skip columns.
func printedGrid(t *testing.T, out string, skip int) (cells []int32) {
	t.Helper()
	_, out, _ = strings.Cut(out, "Done.")
	out, _, _ = strings.Cut(out, ">>>>")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > skip {
			cells = append(cells, numbers(t, fields[skip:])...)
		}
	}
	return cells
}

func numbers(t *testing.T, fields []string) (all []int32) {
	t.Helper()
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, int32(n))
	}
	return all
}

// kmeansFile writes an input file for upstream's k-means.
func kmeansFile(t *testing.T) []string {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintln(&b, kmeansVectors)
	fmt.Fprintln(&b, kmeansClusters)
	for v := range slices.Chunk(kmeansInput(), kmeansDimensions) {
		fmt.Fprintln(&b, v[0], v[1], v[2])
	}
	name := filepath.Join(t.TempDir(), "points")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{name}
}

// printedKmeans parses the output of upstream's k-means, which names each part.
func printedKmeans(t *testing.T, out string) any {
	t.Helper()
	r := new(kmeansResult)
	var into *[]int32
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		switch {
		case strings.Contains(line, "] norm: "):
			r.norms = append(r.norms, numbers(t, fields[2:])...)
		case strings.HasPrefix(line, "Centroids:"):
			into = &r.centroids
		case strings.HasPrefix(line, "Labels:"):
			into = &r.labels
		case strings.HasPrefix(line, "Final counts:"):
			into = &r.counts
		case strings.HasPrefix(line, ">>>>"):
			return r
		case into == &r.counts:
			*into = append(*into, numbers(t, fields[1:])...)
		case into != nil:
			*into = append(*into, numbers(t, fields)...)
		}
	}
	return r
}

// serialKmeans computes the result on one processor. Rank 0 labels its share after the last move of the centroids, the
// other ranks before that move.
func serialKmeans(t *testing.T, ranks int) *kmeansResult {
	t.Helper()
	all := kmeansInput()
	want, err := kmeans.Serial(all, kmeansClusters, kmeans.Options{
		Dimensions: kmeansDimensions, Iterations: kmeansIterations, NormLimit: kmeansNormLimit,
	})
	if err != nil {
		t.Fatal(err)
	}
	each := kmeansVectors / ranks
	assign(all[:each*kmeansDimensions], want.Centroids, want.Labels[:each])
	return &kmeansResult{want.Norms, want.Centroids, want.Counts, want.Labels}
}
