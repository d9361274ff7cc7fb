package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// upstreamCluster returns a cluster of n ranks at port 2718, which upstream's programs use. The daemon runs all ranks
// but rank 0.
func upstreamCluster(t *testing.T, n int, rank0, others, more string) *config.Config {
	t.Helper()
	p := newPlace(t)
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: %q}\n%s\nranks:\n", filepath.Join(t.TempDir(), "c.sock"), more)
	for i := range n {
		what := "run: standin, " + others
		if i == 0 {
			what = rank0
		}
		fmt.Fprintf(&b, "  - {rank: %d, address: %s%d, %s}\n", i, p, i+1, what)
	}
	cfg, err := config.Parse(strings.NewReader(b.String()), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// runHost runs a program as rank 0 from the command line, and returns its output.
func runHost(t *testing.T, cfg *config.Config, program string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	all := []string{"udp", cfg.Rank(0).Address.Addr().String(), strconv.Itoa(len(cfg.Ranks)), "0"}
	for i := 1; i < len(cfg.Ranks); i++ {
		all = append(all, cfg.Rank(i).Address.Addr().String())
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append(all, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s\n%s", cmd, err, out.String(), errs.String())
	}
	return out.String()
}

// TestExamplesMeetFPGAs runs our implementations of upstream's examples, both as hosts and as FPGAs.
func TestExamplesMeetFPGAs(t *testing.T) {
	for _, x := range []example{jacobiExample, kmeansExample} {
		for _, groups := range [][][]int{nil, groupsOf(upTo(1, 8))} {
			l := layout{8, 0, []int{0}, groups}
			t.Run(x.name+" "+l.algorithm(), func(t *testing.T) {
				want := x.want(t, l.ranks)
				allRanks(t, worldsWithFPGAs(t, l), func(ctx context.Context, world *mpi.Comm) error {
					if world.Rank() != 0 {
						_, err := x.ours(ctx, world, &unrolled[int32]{world, 0, groups})
						return err
					}
					got, err := x.ours(ctx, world, &library[int32]{world: world})
					if err == nil && !reflect.DeepEqual(got, want) {
						err = fmt.Errorf("%v, want\n%v", got, want)
					}
					return err
				})
			})
		}
	}
}

// TestUpstreamHostsMeetKernels runs upstream's host programs with our stand-ins and the kernels of the same names.
func TestUpstreamHostsMeetKernels(t *testing.T) {
	source := newUpstreamSource(t)
	t.Run("jacobi2d", func(t *testing.T) {
		cfg := upstreamCluster(t, 5, "peer: cpu", "kernel: jacobi", "")
		startDaemon(t, cfg)
		out := runHost(t, cfg, source.build("jacobi2d", 4, 0).host)
		if got := printedGrid(t, out, 0); !slices.Equal(got, serialJacobi(jacobi.DefaultColumns)) {
			t.Errorf("another result, of %d cells", len(got))
		}
	})
	t.Run("kmeans", func(t *testing.T) {
		cfg := upstreamCluster(t, 5, "peer: cpu", "kernel: kmeans", "")
		startDaemon(t, cfg)
		out := runHost(t, cfg, source.build("kmeans", 4, 0).host, kmeansFile(t)...)
		if got, want := printedKmeans(t, out), serialKmeans(t, 5); !reflect.DeepEqual(got, want) {
			t.Errorf("%v\nwant\n%v", got, want)
		}
	})
}

// TestUpstreamCollectives runs the code that upstream's compiler generates from its examples, for hosts and FPGAs, flat
// and as a tree. The generated hosts run with the generated FPGA programs in our stand-ins, and with our own Send and
// Recv in the same order. Our host runs with the generated FPGA programs.
func TestUpstreamCollectives(t *testing.T) {
	source := newUpstreamSource(t)
	const fpgas = 7
	for _, x := range []example{jacobiExample, kmeansExample} {
		for comOpt, groups := range [][][]int{nil, groupsOf(upTo(1, 1+fpgas))} {
			p := source.build(x.name, fpgas, comOpt)
			l := layout{1 + fpgas, 0, []int{0}, groups}
			t.Run(x.name+" "+l.algorithm(), func(t *testing.T) {
				want := x.want(t, l.ranks)
				check := func(t *testing.T, got any) {
					t.Helper()
					if !reflect.DeepEqual(got, want) {
						t.Errorf("%v\nwant\n%v", got, want)
					}
				}
				t.Run("its host, its FPGAs", func(t *testing.T) {
					cfg := upstreamCluster(t, l.ranks, "peer: cpu", "kernel: \"exec:"+p.role+"\"", "")
					startDaemon(t, cfg)
					check(t, x.read(t, runHost(t, cfg, p.host, x.args(t)...)))
				})
				t.Run("our host, its FPGAs", func(t *testing.T) {
					cfg := upstreamCluster(t, l.ranks, "peer: software", "kernel: \"exec:"+p.role+"\"",
						l.collectives())
					startDaemon(t, cfg)
					d, err := node.Open(cfg, 0, nil)
					if err != nil {
						t.Fatal(err)
					}
					defer d.Close(ended())
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					world := worldOf(t, d)
					got, err := x.ours(ctx, world, &library[int32]{world: world})
					if err != nil {
						t.Fatal(err)
					}
					check(t, got)
				})
				t.Run("its host, our FPGAs", func(t *testing.T) {
					cfg := upstreamCluster(t, l.ranks, "peer: cpu", "kernel: ring", "")
					var fpgas errgroup.Group
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					for i := 1; i < l.ranks; i++ {
						world := openRank(t, cfg, i, deployed)
						fpgas.Go(func() error {
							_, err := x.ours(ctx, world, &unrolled[int32]{world, 0, l.groups})
							return err
						})
					}
					check(t, x.read(t, runHost(t, cfg, p.host, x.args(t)...)))
					if err := fpgas.Wait(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
