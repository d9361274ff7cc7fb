//go:build cgo && linux

package leasetest

// #cgo CFLAGS: -O2 -Wall -Wextra -Werror
// #include <stdlib.h>
// #include "fast.h"
//
// static zrl_block *allocate(void) {
//     void *p;
//     return posix_memalign(&p, 64, sizeof(zrl_block)) == 0 ? memset(p, 0, sizeof(zrl_block)) : NULL;
// }
// static int fast_send(void *b, void *buf, int64_t n, uint64_t type, int dest, int tag, uint64_t comm) {
//     return zrl_fast_send(b, buf, n, type, dest, tag, comm);
// }
// static int fast_recv(void *b, void *buf, int64_t n, uint64_t type, int source, int *tag, uint64_t comm,
//                      uint64_t *length) {
//     return zrl_fast_take(b, buf, n, type, source, tag, comm, length);
// }
// static int fast_barrier(void *b, uint64_t comm) { return zrl_fast_barrier(b, comm); }
// static int fast_bcast(void *b, void *buf, int64_t n, uint64_t type, int root, uint64_t comm) {
//     return zrl_fast_bcast(b, buf, n, type, root, comm);
// }
// static int fast_reduce(void *b, void *in, void *out, int64_t n, uint64_t type, uint64_t op, int root,
//                        uint64_t comm) {
//     return root < 0 ? zrl_fast_allreduce(b, in, out, n, type, op, comm)
//                     : zrl_fast_reduce(b, in, out, n, type, op, root, comm);
// }
// static int fast_blocks(void *b, uint32_t call, void *in, void *out, int64_t n, uint64_t type, uint64_t comm) {
//     return zrl_fast_blocks(b, call, in, n, type, out, n, type, comm);
// }
// static void combine(uint32_t op, uint32_t elem, void *from, void *into, uint32_t n) {
//     zrl_shape s = {.reduction = op, .elem = elem, .bytes = n};
//     zrl_combine(&s, from, into);
// }
import "C"

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
)

// Byte is the handle of a datatype of one byte.
const Byte = 7

// NewBlock returns a Block in memory of C, with the datatype Byte and with datatypes of numbers, whose handles are
// their types in reductions plus 100. Free frees it.
func NewBlock() *lease.Block {
	b := (*lease.Block)(unsafe.Pointer(C.allocate()))
	b.Types[Byte] = lease.Type{Handle: Byte, Size: 1}
	for _, t := range lease.Elements {
		b.Types[Handle(t)] = lease.Type{Handle: Handle(t), Size: uint32(t.Size())}
	}
	return b
}

// Free frees a Block.
func Free(b *lease.Block) { C.free(unsafe.Pointer(b)) }

// NewWord returns a number in memory of C, which is never freed.
func NewWord() *uint32 { return (*uint32)(C.calloc(1, C.sizeof_uint32_t)) }

// Handle returns the handle of a datatype of numbers.
func Handle(t op.Type) uint64 { return uint64(t) + 100 }

func pointer(buf []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(buf)) }

// Send makes MPI_Send of bytes.
func Send(b *lease.Block, buf []byte, dest, tag int, comm uint64) bool {
	return C.fast_send(unsafe.Pointer(b), pointer(buf), C.int64_t(len(buf)), Byte, C.int(dest), C.int(tag),
		C.uint64_t(comm)) != 0
}

// Recv makes MPI_Recv of bytes; a negative tag is MPI_ANY_TAG. It returns the length and the tag of the message.
func Recv(b *lease.Block, buf []byte, source, tag int, comm uint64) (n, got int, done bool) {
	t, length := C.int(tag), C.uint64_t(0)
	done = C.fast_recv(unsafe.Pointer(b), pointer(buf), C.int64_t(len(buf)), Byte, C.int(source), &t, C.uint64_t(comm),
		&length) != 0
	return int(length), int(t), done
}

// Barrier makes MPI_Barrier.
func Barrier(b *lease.Block, comm uint64) bool {
	return C.fast_barrier(unsafe.Pointer(b), C.uint64_t(comm)) != 0
}

// Bcast makes MPI_Bcast of bytes.
func Bcast(b *lease.Block, buf []byte, root int, comm uint64) bool {
	return C.fast_bcast(unsafe.Pointer(b), pointer(buf), C.int64_t(len(buf)), Byte, C.int(root), C.uint64_t(comm)) != 0
}

// Reduce makes MPI_Reduce or, if root is negative, MPI_Allreduce.
func Reduce(b *lease.Block, in, out []byte, t op.Type, o op.Op, root int, comm uint64) bool {
	return C.fast_reduce(unsafe.Pointer(b), pointer(in), pointer(out), C.int64_t(len(in)/t.Size()),
		C.uint64_t(Handle(t)), C.uint64_t(o), C.int(root), C.uint64_t(comm)) != 0
}

// Blocks makes MPI_Allgather or MPI_Alltoall with blocks of n bytes.
func Blocks(b *lease.Block, call uint32, in, out []byte, n int, comm uint64) bool {
	return C.fast_blocks(unsafe.Pointer(b), C.uint32_t(call), pointer(in), pointer(out), C.int64_t(n), Byte,
		C.uint64_t(comm)) != 0
}

// Combine sets into to from ∘ into.
func Combine(o op.Op, t op.Type, from, into []byte) {
	C.combine(C.uint32_t(o), C.uint32_t(t), pointer(from), pointer(into), C.uint32_t(len(into)))
}
