package exchange

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Bcast copies root's buffer to the buffers of all other ranks. All buffers have the same length, which is not
// 0. In a tree, only Root can broadcast, so any other root first sends its buffer to Root.
func Bcast[T mpi.Number](ctx context.Context, r *Ranks, buf []T, root int) error {
	if !r.unrolled {
		return bcast(ctx, r, buf, root)
	}
	if root != Root && r.hasTree {
		if r.Rank() == root {
			if err := send(ctx, r, buf, Root); err != nil {
				return err
			}
		}
		root = Root
	}
	if r.Rank() == root {
		return r.forEachOther(root, func(rank int) error { return send(ctx, r, buf, rank) })
	}
	from := root
	if root == Root {
		from = r.parent
	}
	if err := recv(ctx, r, buf, from); err != nil {
		return err
	}
	return forward(ctx, r, buf)
}

// bcast implements Bcast with package mpi. If the FPGAs have been built with the tree, a call whose root is one of them
// is rejected on all ranks before anything is sent.
func bcast[T mpi.Number](ctx context.Context, r *Ranks, buf []T, root int) error {
	if root == Root || !r.rootOnly {
		err := mpi.Bcast(ctx, r.Comm, buf, root)
		if root == Root || !errors.Is(err, mpi.ErrArg) {
			return err
		}
		r.rootOnly = true
	}
	var err error
	switch r.Rank() {
	case root:
		err = send(ctx, r, buf, Root)
	case Root:
		err = recv(ctx, r, buf, root)
	}
	if err != nil {
		return err
	}
	return mpi.Bcast(ctx, r.Comm, buf, Root)
}

// RecvBcast is Bcast from Root, for a rank that uses Send and Recv and does not know the length. It returns the
// part of buf that it has filled, which is its beginning.
func RecvBcast[T mpi.Number](ctx context.Context, r *Ranks, buf []T) ([]T, error) {
	buf, err := recvSome(ctx, r, buf, r.parent)
	if err != nil {
		return nil, err
	}
	return buf, forward(ctx, r, buf)
}

// forward sends buf to all ranks below.
func forward[T mpi.Number](ctx context.Context, r *Ranks, buf []T) error {
	for _, rank := range r.children {
		if err := send(ctx, r, buf, rank); err != nil {
			return err
		}
	}
	return nil
}

// Scatter sends each rank its block of all, which is used only on Root. all consists of consecutive blocks with
// the length of own. On Root, own may be the first block of all, which is then not copied.
func Scatter[T mpi.Number](ctx context.Context, r *Ranks, all, own []T) error {
	switch {
	case !r.unrolled:
		return mpi.Scatter(ctx, r.Comm, all, own, Root)
	case r.Rank() == Root:
		copy(own, all)
		return r.forEachOther(Root, func(rank int) error { return send(ctx, r, all[rank*len(own):][:len(own)], rank) })
	case r.children == nil:
		return recv(ctx, r, own, r.parent)
	}
	blocks := make([]T, r.Blocks()*len(own))
	if err := recv(ctx, r, blocks, r.parent); err != nil {
		return err
	}
	copy(own, blocks)
	return r.forEachChild(len(own), func(from, end, rank int) error { return send(ctx, r, blocks[from:end], rank) })
}

// RecvScatter is Scatter for a rank that uses Send and Recv and does not know the length of its block. It
// returns the beginning of buf, which holds the block. Blocks blocks must fit in buf.
func RecvScatter[T mpi.Number](ctx context.Context, r *Ranks, buf []T) ([]T, error) {
	blocks, err := recvSome(ctx, r, buf, r.parent)
	if err != nil {
		return nil, err
	}
	if len(blocks)%r.Blocks() != 0 {
		return nil, fmt.Errorf("%w: %d numbers from rank %d are not the blocks of %d ranks", r.unexpected, len(blocks),
			r.parent, r.Blocks())
	}
	n := len(blocks) / r.Blocks()
	return blocks[:n], r.forEachChild(n, func(from, end, rank int) error { return send(ctx, r, blocks[from:end], rank) })
}

// forEachChild calls f for each rank below, with the position of that rank's block. The blocks come after this rank's
// own block.
func (r *Ranks) forEachChild(n int, f func(from, end, rank int) error) error {
	for i, rank := range r.children {
		if err := f((i+1)*n, (i+2)*n, rank); err != nil {
			return err
		}
	}
	return nil
}

// Gather is the inverse of Scatter.
func Gather[T mpi.Number](ctx context.Context, r *Ranks, own, all []T) error {
	switch {
	case !r.unrolled:
		return mpi.Gather(ctx, r.Comm, own, all, Root)
	case r.Rank() == Root:
		copy(all, own)
		return r.forEachOther(Root, func(rank int) error { return recv(ctx, r, all[rank*len(own):][:len(own)], rank) })
	case r.children == nil:
		return send(ctx, r, own, r.parent)
	}
	blocks := make([]T, r.Blocks()*len(own))
	copy(blocks, own)
	if err := r.forEachChild(len(own),
		func(from, end, rank int) error { return recv(ctx, r, blocks[from:end], rank) }); err != nil {
		return err
	}
	return send(ctx, r, blocks, r.parent)
}

// Sum adds up the numbers of all ranks. The sums replace Root's numbers; the numbers of other ranks are undefined
// afterwards.
func Sum(ctx context.Context, r *Ranks, own []int32) error {
	if !r.unrolled {
		var sums []int32
		if r.Rank() == Root {
			sums = own
		}
		return mpi.Reduce(ctx, r.Comm, own, sums, mpi.Sum, Root)
	}
	theirs := make([]int32, len(own))
	collect := func(rank int) error {
		if err := recv(ctx, r, theirs, rank); err != nil {
			return err
		}
		for i, x := range theirs {
			own[i] += x
		}
		return nil
	}
	if r.Rank() == Root {
		return r.forEachOther(Root, collect)
	}
	for _, rank := range r.children {
		if err := collect(rank); err != nil {
			return err
		}
	}
	return send(ctx, r, own, r.parent)
}

func send[T mpi.Number](ctx context.Context, r *Ranks, buf []T, to int) error {
	return mpi.Send(ctx, r.Comm, buf, to, tag)
}

// recv receives a message of known length.
func recv[T mpi.Number](ctx context.Context, r *Ranks, buf []T, from int) error {
	got, err := recvSome(ctx, r, buf, from)
	if err == nil && len(got) != len(buf) {
		err = fmt.Errorf("%w: %d numbers from rank %d instead of %d", r.unexpected, len(got), from, len(buf))
	}
	return err
}

// recvSome receives a message into the beginning of buf, and returns that part of buf.
func recvSome[T mpi.Number](ctx context.Context, r *Ranks, buf []T, from int) ([]T, error) {
	st, err := mpi.Recv(ctx, r.Comm, buf, from, tag)
	if err != nil {
		return nil, err
	}
	return buf[:mpi.Count[T](st)], nil
}
