package demo

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// runOne runs the example as the rank that the environment says.
func (r *report) runOne(ctx context.Context, e Example) error {
	world, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	r.Where = "attached to " + os.Getenv(mpi.EnvSocket)
	if cfg := os.Getenv(mpi.EnvConfig); cfg != "" {
		r.Where = "as " + cfg + " says"
	}
	r.Rank = world.Rank()
	r.describe(world)
	if err := e.Check(world.Size()); err != nil {
		finalize(ctx, world)
		return usagef("%w", err)
	}
	if r.Result, err = e.Run(ctx, world); err != nil {
		finalize(ctx, world)
		return err
	}
	return world.Finalize(ctx)
}

// runAll runs the example as all ranks of a cluster, or of several.
func (r *report) runAll(ctx context.Context, e Example, o options) error {
	clusters := []int{o.ranks}
	if s, ok := e.(Series); ok {
		clusters = s.Clusters(o.ranks)
	}
	for _, ranks := range clusters {
		if err := r.runCluster(ctx, e, ranks, protocol.Profile(o.profile)); err != nil {
			return err
		}
	}
	return nil
}

// runCluster runs the example as all ranks of one cluster.
func (r *report) runCluster(ctx context.Context, e Example, n int, profile protocol.Profile) error {
	worlds, err := start(ctx, n, profile)
	if err != nil {
		return err
	}
	r.Where = "in this process"
	r.describe(worlds[0])
	ranks, running := errgroup.WithContext(ctx)
	for _, world := range worlds {
		ranks.Go(func() error {
			result, err := e.Run(running, world)
			if world.Rank() == 0 {
				r.Result = result
			}
			return err
		})
	}
	if err := ranks.Wait(); err != nil {
		finalize(ctx, worlds...)
		return err
	}
	var ends errgroup.Group
	for _, world := range worlds {
		ends.Go(func() error { return world.Finalize(ctx) })
	}
	return ends.Wait()
}

// start makes a cluster in this process.
func start(ctx context.Context, n int, profile protocol.Profile) ([]*mpi.Comm, error) {
	devices, err := node.Local(n, profile)
	if err != nil {
		return nil, err
	}
	worlds := make([]*mpi.Comm, len(devices))
	for i, d := range devices {
		var newErr error
		worlds[i], newErr = mpi.New(d)
		err = errors.Join(err, newErr)
	}
	if err != nil {
		for _, d := range devices {
			err = errors.Join(err, d.Close(ctx))
		}
		return nil, err
	}
	return worlds, nil
}

// finalize ends ranks that have failed, with nothing said about what is cut off
// by that.
func finalize(ctx context.Context, worlds ...*mpi.Comm) {
	ctx, stop := context.WithCancel(ctx)
	stop()
	for _, world := range worlds {
		_ = world.Finalize(ctx) // the failure has been told
	}
}

// describe notes what the cluster is like.
func (r *report) describe(world *mpi.Comm) {
	r.Ranks = world.Size()
	for rank := range world.Size() {
		if info, err := world.PeerInfo(rank); err == nil && rank != world.Rank() {
			r.Profiles = append(r.Profiles, info.Profile)
		}
	}
	slices.Sort(r.Profiles)
	r.Profiles = slices.Compact(r.Profiles)
}
