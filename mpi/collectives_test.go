package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// space is memory for elements of a datatype with three int32 each.
type space struct {
	t   *datatype.Type
	mem []int32
}

const gap = -1 // the value between elements

func newSpace(t *datatype.Type, elements int) space {
	_, end, _ := t.Span(int64(elements))
	s := space{t, make([]int32, end/4)}
	for i := range s.mem {
		s.mem[i] = gap
	}
	return s
}

// of stores the elements and returns the space.
func (s space) of(values ...int32) space {
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
	s.t.Unpack(unsafe.Pointer(unsafe.SliceData(s.mem)), int64(len(values)/3), raw, 0)
	return s
}

func (s space) values(elements int) []int32 {
	list := make([]int32, 3*elements)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), 4*len(list))
	s.t.Pack(raw, unsafe.Pointer(unsafe.SliceData(s.mem)), int64(elements), 0)
	return list
}

func (s space) buffer(elements int) mpi.Buffer { return mpi.Typed(s.mem, elements, s.t) }

func (s space) blocks(counts, displs []int) mpi.Blocks {
	return mpi.TypedBlocks(s.mem, counts, displs, s.t)
}

// TestTypedCollectives checks that the calls with buffers have the same results as the calls with slices, for any
// datatypes, and write nothing between the elements.
func TestTypedCollectives(t *testing.T) {
	of := mpi.TypeOf[int32]()
	types := []*datatype.Type{
		must(datatype.Contiguous(3, of)),
		// interleaved
		must(datatype.Resized(must(datatype.Vector(3, 1, 9, of)), 0, 4)),
		// backwards
		must(datatype.Indexed([]int64{1, 2}, []int64{3, 0}, of)),
		// with gaps
		must(datatype.Resized(must(datatype.Struct([]int64{2, 1}, []int64{0, 12}, []*datatype.Type{of, of})), 0, 20)),
	}
	const ranks, n = 3, 3
	counts, displs := []int{2, 0, 3}, []int{4, 9, 0}
	for _, from := range types {
		for _, to := range types {
			err := job.Run(t.Context(), ranks, func(ctx context.Context, world *mpi.Comm) error {
				me := world.Rank()
				mine := make([]int32, 3*n*ranks)
				for i := range mine {
					mine[i] = int32(1000*me + i)
				}
				var errs []error
				check := func(name string, err error, got space, elements int, want []int32) {
					switch {
					case err != nil:
						errs = append(errs, fmt.Errorf("%s: %w", name, err))
					case !slices.Equal(got.values(elements), want[:3*elements]):
						errs = append(errs, fmt.Errorf("%s, %v to %v: %v, want %v", name, from.Contents(),
							to.Contents(), got.values(elements), want[:3*elements]))
					}
					written := newSpace(got.t, elements).of(got.values(elements)...)
					for i, v := range written.mem {
						if v == gap && i < len(got.mem) && got.mem[i] != gap {
							errs = append(errs, fmt.Errorf("%s: word %d between the elements was written", name, i))
						}
					}
				}
				fail := func(e error) {
					if e != nil {
						errs = append(errs, e)
					}
				}
				send := newSpace(from, n).of(mine[:3*n]...)
				sends := newSpace(from, n*ranks).of(mine...)
				recv := func(k int) space { return newSpace(to, k) }

				want := slices.Clone(mine[:3*n])
				fail(mpi.Bcast(ctx, world, want, 1))
				s := recv(n)
				if me == 1 {
					s.of(mine[:3*n]...)
				}
				check("Bcast", world.Bcast(ctx, s.buffer(n), 1), s, n, want)

				all := make([]int32, 3*n*ranks)
				fail(mpi.Allgather(ctx, world, mine[:3*n], all))
				s = recv(n * ranks)
				check("Allgather", world.Allgather(ctx, send.buffer(n), s.buffer(n*ranks)), s, n*ranks, all)
				s = recv(n * ranks).of(slices.Concat(make([]int32, 3*n*me), mine[:3*n],
					make([]int32, 3*n*(ranks-1-me)))...)
				check("Allgather in place", world.Allgather(ctx, mpi.InPlace, s.buffer(n*ranks)), s, n*ranks, all)
				s = recv(n * ranks)
				err := world.Gather(ctx, send.buffer(n), s.buffer(n*ranks), 2)
				if me == 2 {
					check("Gather", err, s, n*ranks, all)
				} else {
					fail(err)
				}

				part := make([]int32, 3*n)
				fail(mpi.Scatter(ctx, world, mine, part, 0))
				s = recv(n)
				check("Scatter", world.Scatter(ctx, sends.buffer(n*ranks), s.buffer(n), 0), s, n, part)
				if me == 0 {
					fail(world.Scatter(ctx, sends.buffer(n*ranks), mpi.InPlace, 0))
				} else {
					s = recv(n)
					check("Scatter in place", world.Scatter(ctx, mpi.Buffer{}, s.buffer(n), 0), s, n, part)
				}

				fail(mpi.Alltoall(ctx, world, mine, all))
				s = recv(n * ranks)
				check("Alltoall", world.Alltoall(ctx, sends.buffer(n*ranks), s.buffer(n*ranks)), s, n*ranks, all)
				s = recv(n * ranks).of(mine...)
				check("Alltoall in place", world.Alltoall(ctx, mpi.InPlace, s.buffer(n*ranks)), s, n*ranks, all)

				// The v forms: rank i has counts[i] elements, at displs[i].
				words := func(list []int) []int {
					out := slices.Clone(list)
					for i := range out {
						out[i] *= 3
					}
					return out
				}
				allv := slices.Repeat([]int32{gap}, 3*n*ranks)
				fail(mpi.Allgatherv(ctx, world, mine[:3*counts[me]], allv, words(counts), words(displs)))
				values := func(s space) []int32 { // of the blocks in s
					var list []int32
					whole := s.values(n * ranks)
					for i, k := range counts {
						list = append(list, whole[3*displs[i]:][:3*k]...)
					}
					return list
				}
				wantv := values(newSpace(types[0], n*ranks).of(allv...))
				checkv := func(name string, err error, s space) {
					if err != nil || !slices.Equal(values(s), wantv) {
						errs = append(errs, fmt.Errorf("%s, %v to %v: %v, %v, want %v", name, from.Contents(),
							to.Contents(), err, values(s), wantv))
					}
				}
				few := newSpace(from, n).of(mine[:3*n]...)
				s = recv(n * ranks)
				checkv("Allgatherv", world.Allgatherv(ctx, few.buffer(counts[me]), s.blocks(counts, displs)), s)
				s = recv(n * ranks)
				if err := world.Gatherv(ctx, few.buffer(counts[me]), s.blocks(counts, displs), 1); me == 1 {
					checkv("Gatherv", err, s)
				} else {
					fail(err)
				}
				s = recv(n)
				fail(mpi.Scatterv(ctx, world, mine, part[:3*counts[me]], words(counts), words(displs), 0))
				check("Scatterv", world.Scatterv(ctx, sends.blocks(counts, displs), s.buffer(counts[me]), 0), s,
					counts[me], part)

				fail(mpi.Alltoallv(ctx, world, mine, []int{3 * me, 3 * me, 3 * me}, []int{0, 9, 18}, all,
					[]int{0, 3, 6}, []int{0, 0, 3}))
				s = recv(3)
				check("Alltoallv", world.Alltoallv(ctx, sends.blocks([]int{me, me, me}, []int{0, 3, 6}),
					s.blocks([]int{0, 1, 2}, []int{0, 0, 1})), s, 3, all)

				// Requests.
				fail(mpi.Alltoall(ctx, world, mine, all))
				s = recv(n * ranks)
				r, err := world.Ialltoall(sends.buffer(n*ranks), s.buffer(n*ranks))
				check("Ialltoall", errors.Join(err, wait(ctx, r)), s, n*ranks, all)

				// Reductions of numbers, and of elements with a function that is not commutative.
				sum := make([]int32, 3*n)
				fail(mpi.Allreduce(ctx, world, mine[:3*n], sum, mpi.Sum))
				s = newSpace(from, n)
				check("Allreduce", world.Allreduce(ctx, send.buffer(n), s.buffer(n), mpi.Sum), s, n, sum)
				s = newSpace(from, n).of(mine[:3*n]...)
				check("Allreduce in place", world.Allreduce(ctx, mpi.InPlace, s.buffer(n), mpi.Sum), s, n, sum)
				// left returns its first operand.
				left := mpi.Foreign.OpOf(func(in, inout unsafe.Pointer, count int, t *datatype.Type) error {
					raw := make([]byte, int64(count)*t.Size())
					t.Pack(raw, in, int64(count), 0)
					t.Unpack(inout, int64(count), raw, 0)
					return nil
				}, false)
				s = newSpace(from, n)
				first := make([]int32, 3*n)
				copy(first, mine)
				fail(mpi.Bcast(ctx, world, first, 0))
				check("Allreduce by a function", world.Allreduce(ctx, send.buffer(n), s.buffer(n), left), s, n, first)
				s = newSpace(from, n)
				if err := world.Reduce(ctx, send.buffer(n), s.buffer(n), left, 2); me == 2 {
					check("Reduce by a function", err, s, n, first)
				} else {
					fail(err)
				}
				s = newSpace(from, n)
				check("Scan", world.Scan(ctx, send.buffer(n), s.buffer(n), left), s, n, first)
				fail(mpi.ReduceScatter(ctx, world, mine[:3*5], part[:3*counts[me]], words(counts), mpi.Sum))
				s = newSpace(from, n)
				check("ReduceScatter", world.ReduceScatter(ctx, newSpace(from, 5).of(mine[:3*5]...).buffer(5),
					s.buffer(counts[me]), words(counts), mpi.Sum), s, counts[me], part)
				s = newSpace(from, 5).of(mine[:3*5]...)
				fail(world.ReduceScatter(ctx, mpi.InPlace, s.buffer(5), words(counts), mpi.Sum))
				if got := s.values(counts[me]); !slices.Equal(got, part[:3*counts[me]]) { // the rest is undefined
					errs = append(errs, fmt.Errorf("ReduceScatter in place: %v, want %v", got, part))
				}
				return errors.Join(errs...)
			})
			if err != nil {
				t.Errorf("%v", err)
			}
		}
	}
}

// TestAlltoallwUnaligned uses blocks of different datatypes at unaligned offsets that are no multiples of the first
// datatype.
func TestAlltoallwUnaligned(t *testing.T) {
	devices, err := node.StartLocal(2, protocol.Extended)
	if err != nil {
		t.Fatal(err)
	}
	word, letter := mpi.TypeOf[int32](), mpi.TypeOf[byte]()
	onRanks(t, devices, func(ctx context.Context, world *mpi.Comm) error {
		// Rank r sends 2 words to rank 0 and 3 bytes to rank 1.
		sent := make([]byte, 20)
		for i := range sent {
			sent[i] = byte(20*world.Rank() + i)
		}
		send := mpi.Foreign.MemoryBlocks(unsafe.Pointer(&sent[0]),
			[]mpi.Block{{Count: 2, Offset: 1, Datatype: word}, {Count: 3, Offset: 14, Datatype: letter}})
		got := make([]byte, 20)
		recv := []mpi.Block{{Count: 2, Offset: 11, Datatype: word}, {Count: 2, Offset: 2, Datatype: word}}
		want := append(append(make([]byte, 2), 21, 22, 23, 24, 25, 26, 27, 28, 0, 1, 2, 3, 4, 5, 6, 7, 8), 0)
		if world.Rank() == 1 {
			recv = []mpi.Block{{Count: 3, Offset: 7, Datatype: letter}, {Count: 3, Offset: 3, Datatype: letter}}
			want = append(append(make([]byte, 3), 34, 35, 36, 0, 14, 15, 16), make([]byte, 10)...)
		}
		for _, f := range []func() error{
			func() error {
				return world.Alltoallv(ctx, send, mpi.Foreign.MemoryBlocks(unsafe.Pointer(&got[0]), recv))
			},
			func() error {
				r, err := world.Ialltoallv(send, mpi.Foreign.MemoryBlocks(unsafe.Pointer(&got[0]), recv))
				if err == nil {
					_, err = r.Wait(ctx)
				}
				return err
			},
		} {
			clear(got)
			if err := f(); err != nil {
				return err
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("%v, want %v", got, want)
			}
		}
		return nil
	})
}
