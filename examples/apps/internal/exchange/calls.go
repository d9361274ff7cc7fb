package exchange

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Bcast copies root's buffer to the buffers of all other ranks. All buffers have the same length, which is not
// 0. In a tree, only Root can broadcast, so any other root first sends its buffer to Root.
func Bcast[T mpi.Number](ctx context.Context, ranks *Ranks, buf []T, root int) error {
	if !ranks.unrolled {
		return bcast(ctx, ranks, buf, root)
	}
	if root != Root && ranks.hasTree {
		if ranks.Rank() == root {
			if err := send(ctx, ranks, buf, Root); err != nil {
				return err
			}
		}
		root = Root
	}
	if ranks.Rank() == root {
		return ranks.forEachOther(root, func(rank int) error { return send(ctx, ranks, buf, rank) })
	}
	from := root
	if root == Root {
		from = ranks.parent
	}
	if err := recv(ctx, ranks, buf, from); err != nil {
		return err
	}
	return forward(ctx, ranks, buf)
}

// bcast implements Bcast with package mpi. If the FPGAs have been built with the tree, package mpi rejects any other
// root than Root on all ranks before it sends anything. The root then sends its buffer to Root, which broadcasts it.
func bcast[T mpi.Number](ctx context.Context, ranks *Ranks, buf []T, root int) error {
	if root == Root || !ranks.rootOnly {
		err := mpi.Bcast(ctx, ranks.Comm, buf, root)
		if root == Root || !errors.Is(err, mpi.ErrArg) {
			return err
		}
		ranks.rootOnly = true
	}
	var err error
	switch ranks.Rank() {
	case root:
		err = send(ctx, ranks, buf, Root)
	case Root:
		err = recv(ctx, ranks, buf, root)
	}
	if err != nil {
		return err
	}
	return mpi.Bcast(ctx, ranks.Comm, buf, Root)
}

// RecvBcast receives a buffer that Root broadcasts, on a rank that uses Send and Recv and does not know the length. It
// returns the filled part of buf, which is its beginning.
func RecvBcast[T mpi.Number](ctx context.Context, r *Ranks, buf []T) ([]T, error) {
	buf, err := recvSome(ctx, r, buf, r.parent)
	if err != nil {
		return nil, err
	}
	return buf, forward(ctx, r, buf)
}

// forward sends buf to all children.
func forward[T mpi.Number](ctx context.Context, r *Ranks, buf []T) error {
	for _, rank := range r.children {
		if err := send(ctx, r, buf, rank); err != nil {
			return err
		}
	}
	return nil
}

// Scatter sends each rank its block of all, a buffer that is used only on Root. This buffer consists of consecutive
// blocks with the length of own. On Root, own may be the first of these blocks, which is then not copied.
func Scatter[T mpi.Number](ctx context.Context, ranks *Ranks, all, own []T) error {
	switch {
	case !ranks.unrolled:
		return mpi.Scatter(ctx, ranks.Comm, all, own, Root)
	case ranks.Rank() == Root:
		copy(own, all)
		return ranks.forEachOther(Root,
			func(rank int) error { return send(ctx, ranks, all[rank*len(own):][:len(own)], rank) })
	case ranks.children == nil:
		return recv(ctx, ranks, own, ranks.parent)
	}
	blocks := make([]T, ranks.Blocks()*len(own))
	if err := recv(ctx, ranks, blocks, ranks.parent); err != nil {
		return err
	}
	copy(own, blocks)
	return ranks.forEachChild(len(own),
		func(from, end, rank int) error { return send(ctx, ranks, blocks[from:end], rank) })
}

// RecvScatter does the part of Scatter on a rank that uses Send and Recv and does not know the length of its block. It
// returns the beginning of buf, which then holds the block. buf must have space for as many blocks as Ranks.Blocks
// returns.
func RecvScatter[T mpi.Number](ctx context.Context, ranks *Ranks, buf []T) ([]T, error) {
	blocks, err := recvSome(ctx, ranks, buf, ranks.parent)
	if err != nil {
		return nil, err
	}
	if len(blocks)%ranks.Blocks() != 0 {
		return nil, fmt.Errorf("%w: %d numbers from rank %d are not the blocks of %d ranks", ranks.unexpected, len(blocks),
			ranks.parent, ranks.Blocks())
	}
	n := len(blocks) / ranks.Blocks()
	return blocks[:n], ranks.forEachChild(n,
		func(from, end, rank int) error { return send(ctx, ranks, blocks[from:end], rank) })
}

// forEachChild calls f for each child, with the position of the child's block in the buffer. The first block is this
// rank's own. Every block has n elements.
func (r *Ranks) forEachChild(n int, f func(from, end, rank int) error) error {
	for i, rank := range r.children {
		if err := f((i+1)*n, (i+2)*n, rank); err != nil {
			return err
		}
	}
	return nil
}

// Gather is the inverse of Scatter.
func Gather[T mpi.Number](ctx context.Context, ranks *Ranks, own, all []T) error {
	switch {
	case !ranks.unrolled:
		return mpi.Gather(ctx, ranks.Comm, own, all, Root)
	case ranks.Rank() == Root:
		copy(all, own)
		return ranks.forEachOther(Root,
			func(rank int) error { return recv(ctx, ranks, all[rank*len(own):][:len(own)], rank) })
	case ranks.children == nil:
		return send(ctx, ranks, own, ranks.parent)
	}
	blocks := make([]T, ranks.Blocks()*len(own))
	copy(blocks, own)
	if err := ranks.forEachChild(len(own),
		func(from, end, rank int) error { return recv(ctx, ranks, blocks[from:end], rank) }); err != nil {
		return err
	}
	return send(ctx, ranks, blocks, ranks.parent)
}

// Sum adds up the numbers of all ranks. The sums replace Root's numbers; the numbers of other ranks are undefined
// afterwards.
func Sum(ctx context.Context, ranks *Ranks, own []int32) error {
	if !ranks.unrolled {
		var sums []int32
		if ranks.Rank() == Root {
			sums = own
		}
		return mpi.Reduce(ctx, ranks.Comm, own, sums, mpi.Sum, Root)
	}
	theirs := make([]int32, len(own))
	collect := func(rank int) error {
		if err := recv(ctx, ranks, theirs, rank); err != nil {
			return err
		}
		for i, x := range theirs {
			own[i] += x
		}
		return nil
	}
	if ranks.Rank() == Root {
		return ranks.forEachOther(Root, collect)
	}
	for _, rank := range ranks.children {
		if err := collect(rank); err != nil {
			return err
		}
	}
	return send(ctx, ranks, own, ranks.parent)
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
