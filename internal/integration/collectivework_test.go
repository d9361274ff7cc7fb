package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// valueOf returns word i of a rank's contribution to a call. Sums of such floats depend on the order of addition.
func valueOf[T word](call, rank, i int) T {
	x := uint32(call+1)*2654435761 ^ uint32(rank+1)*3266489917 ^ uint32(i)*2246822519
	return T(int32(x)>>7) / 3
}

func valuesOf[T word](call, rank, n int) []T {
	words := make([]T, n)
	for i := range words {
		words[i] = valueOf[T](call, rank, i)
	}
	return words
}

// layout assigns roles to the ranks of a collective test.
type layout struct {
	ranks, root int
	hosts       []int
	// groups are the groups of the tree, or nil for flat.
	groups [][]int
}

func (l layout) algorithm() string {
	if l.groups == nil {
		return "flat"
	}
	return "tree"
}

func (l layout) String() string {
	return fmt.Sprintf("%s, %d ranks, hosts %v, root %d", l.algorithm(), l.ranks, l.hosts, l.root)
}

// collectives returns the collectives section of a configuration.
func (l layout) collectives() string {
	if l.groups == nil {
		return "collectives: {upstream: flat}"
	}
	return "collectives: {upstream: tree, fpgas: " + list(slices.Concat(l.groups...)) + "}"
}

// list formats a list of ranks for YAML and JSON.
func list(ranks []int) string { return strings.ReplaceAll(fmt.Sprint(ranks), " ", ",") }

// blocks reports whether the layout supports Scatter and Gather. In the tree, blocks are in the order of the FPGAs,
// after the root's block.
func (l layout) blocks() bool {
	return l.groups == nil || l.root == 0 && slices.IsSorted(slices.Concat(l.groups...))
}

// sum returns the result of Reduce over the words of all ranks, in upstream's order.
func sum[T word](l layout, call, n int) []T {
	add := func(a, b []T) []T {
		for i := range a {
			a[i] += b[i]
		}
		return a
	}
	if l.groups == nil {
		all := valuesOf[T](call, 0, n)
		for r := 1; r < l.ranks; r++ {
			all = add(all, valuesOf[T](call, r, n))
		}
		return all
	}
	all := valuesOf[T](call, l.root, n)
	for _, g := range l.groups {
		part := valuesOf[T](call, g[0], n)
		for _, r := range g[1:] {
			part = add(part, valuesOf[T](call, r, n))
		}
		all = add(all, part)
	}
	return all
}

// work makes each of the four calls with each number of words, and checks the results.
func work[T word](ctx context.Context, c collectives[T], l layout, rank int, counts ...int) error {
	for call, n := range counts {
		fail := func(what string, got, want []T) error {
			if slices.Equal(got, want) {
				return nil
			}
			at := 0
			for at < len(got) && got[at] == want[at] {
				at++
			}
			return fmt.Errorf("%s of %d words: word %d of rank %d is %v, want %v", what, n, at, rank, got[at], want[at])
		}
		var all []T // of all ranks, at the root
		if rank == l.root {
			for r := range l.ranks {
				all = append(all, valuesOf[T](call, r, n)...)
			}
		}
		mine, buf := valuesOf[T](call, rank, n), make([]T, n)

		if rank == l.root {
			copy(buf, mine)
		}
		if err := errors.Join(c.bcast(ctx, buf), fail("Bcast", buf, valuesOf[T](call, l.root, n))); err != nil {
			return err
		}
		if l.blocks() {
			clear(buf)
			if err := errors.Join(c.scatter(ctx, all, buf), fail("Scatter", buf, mine)); err != nil {
				return err
			}
			got := make([]T, len(all))
			if err := errors.Join(c.gather(ctx, mine, got), fail("Gather", got, all)); err != nil {
				return err
			}
		}
		if rank != l.root {
			buf = nil
		}
		if err := c.reduce(ctx, mine, buf); err != nil {
			return err
		}
		if rank == l.root {
			if err := fail("Reduce", buf, sum[T](l, call, n)); err != nil {
				return err
			}
		}
	}
	return nil
}
