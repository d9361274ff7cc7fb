package integration_test

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// word is an element type of upstream's collective calls.
type word interface{ int32 | float32 }

// collectives are upstream's collective calls for one rank, with a fixed root. Buffers that only the root uses may be
// nil on other ranks.
type collectives[T word] interface {
	bcast(ctx context.Context, buf []T) error
	scatter(ctx context.Context, send, recv []T) error
	gather(ctx context.Context, send, recv []T) error
	reduce(ctx context.Context, send, recv []T) error
}

// unrolled is a rank that knows only Send and Recv. For collective calls, it runs the loops that upstream's compiler
// substitutes for them. The loops are modelled on that compiler's output, independently of package coll, which is
// tested against them.
type unrolled[T word] struct {
	world *mpi.Comm
	root  int
	// groups lists the FPGAs of the tree (com_opt 1 and more), in groups of four that start with their replicator.
	// Without groups, all calls are flat (com_opt 0).
	groups [][]int
}

// groupsOf divides FPGAs, in the order of the cluster file, into groups.
func groupsOf(fpgas []int) (groups [][]int) {
	for len(fpgas) > 4 {
		groups = append(groups, fpgas[:4])
		fpgas = fpgas[4:]
	}
	return append(groups, fpgas)
}

// group returns the caller's group.
func (u *unrolled[T]) group() []int {
	for _, g := range u.groups {
		for _, r := range g {
			if r == u.world.Rank() {
				return g
			}
		}
	}
	return nil
}

func (u *unrolled[T]) isRoot() bool { return u.world.Rank() == u.root }

// replicates reports whether the caller is the first of its group.
func (u *unrolled[T]) replicates() bool { return u.group()[0] == u.world.Rank() }

func (u *unrolled[T]) send(ctx context.Context, buf []T, to int) error {
	return mpi.Send(ctx, u.world, buf, to, 0)
}

func (u *unrolled[T]) recv(ctx context.Context, buf []T, from int) error {
	st, err := mpi.Recv(ctx, u.world, buf, from, 0)
	if n := mpi.Count[T](st); err == nil && n != len(buf) {
		err = fmt.Errorf("rank %d got %d words of rank %d, and waited for %d", u.world.Rank(), n, from, len(buf))
	}
	return err
}

// others calls f for all ranks but the root, in order.
func (u *unrolled[T]) others(f func(rank int) error) error {
	for r := range u.world.Size() {
		if r == u.root {
			continue
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (u *unrolled[T]) bcast(ctx context.Context, buf []T) error {
	switch {
	case u.groups == nil && u.isRoot():
		return u.others(func(r int) error { return u.send(ctx, buf, r) })
	case u.groups == nil:
		return u.recv(ctx, buf, u.root)
	case u.isRoot():
		for _, g := range u.groups {
			if err := u.send(ctx, buf, g[0]); err != nil {
				return err
			}
		}
		return nil
	case !u.replicates():
		return u.recv(ctx, buf, u.group()[0])
	}
	if err := u.recv(ctx, buf, u.root); err != nil {
		return err
	}
	for _, r := range u.group()[1:] {
		if err := u.send(ctx, buf, r); err != nil {
			return err
		}
	}
	return nil
}

func (u *unrolled[T]) scatter(ctx context.Context, send, recv []T) error {
	n := len(recv)
	switch {
	case u.groups == nil && u.isRoot():
		copy(recv, send[u.root*n:])
		return u.others(func(r int) error { return u.send(ctx, send[r*n:][:n], r) })
	case u.groups == nil:
		return u.recv(ctx, recv, u.root)
	case u.isRoot():
		copy(recv, send)
		at := n
		for _, g := range u.groups {
			if err := u.send(ctx, send[at:][:len(g)*n], g[0]); err != nil {
				return err
			}
			at += len(g) * n
		}
		return nil
	case !u.replicates():
		return u.recv(ctx, recv, u.group()[0])
	}
	all := make([]T, len(u.group())*n)
	if err := u.recv(ctx, all, u.root); err != nil {
		return err
	}
	copy(recv, all)
	for i, r := range u.group()[1:] {
		if err := u.send(ctx, all[(i+1)*n:][:n], r); err != nil {
			return err
		}
	}
	return nil
}

func (u *unrolled[T]) gather(ctx context.Context, send, recv []T) error {
	n := len(send)
	switch {
	case u.groups == nil && u.isRoot():
		copy(recv[u.root*n:], send)
		return u.others(func(r int) error { return u.recv(ctx, recv[r*n:][:n], r) })
	case u.groups == nil:
		return u.send(ctx, send, u.root)
	case u.isRoot():
		copy(recv, send)
		at := n
		for _, g := range u.groups {
			if err := u.recv(ctx, recv[at:][:len(g)*n], g[0]); err != nil {
				return err
			}
			at += len(g) * n
		}
		return nil
	case !u.replicates():
		return u.send(ctx, send, u.group()[0])
	}
	all := make([]T, len(u.group())*n)
	for i, r := range u.group()[1:] {
		if err := u.recv(ctx, all[(i+1)*n:][:n], r); err != nil {
			return err
		}
	}
	copy(all, send)
	return u.send(ctx, all, u.root)
}

// reduce adds the contributions of all ranks. It does not imitate a bug of upstream's compiler: if the root is not rank
// 0, the generated code loses the contributions of lower ranks, because the root overwrites them.
func (u *unrolled[T]) reduce(ctx context.Context, send, recv []T) error {
	tmp := make([]T, len(send))
	collect := func(sum []T, r int) error {
		if err := u.recv(ctx, tmp, r); err != nil {
			return err
		}
		for i, x := range tmp {
			sum[i] += x
		}
		return nil
	}
	switch {
	case u.groups == nil && u.isRoot():
		if u.root != 0 {
			return fmt.Errorf("rank %d cannot be the root: upstream's can be rank 0 only", u.root)
		}
		copy(recv, send)
		return u.others(func(r int) error { return collect(recv, r) })
	case u.groups == nil:
		return u.send(ctx, send, u.root)
	case u.isRoot():
		copy(recv, send)
		for _, g := range u.groups {
			if err := collect(recv, g[0]); err != nil {
				return err
			}
		}
		return nil
	case !u.replicates():
		return u.send(ctx, send, u.group()[0])
	}
	sum := append([]T(nil), send...)
	for _, r := range u.group()[1:] {
		if err := collect(sum, r); err != nil {
			return err
		}
	}
	return u.send(ctx, sum, u.root)
}
