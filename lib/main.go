// Command lib is the shared library libzrlmpi, which is MPI for programs in other languages. Its interface
// consists of the two functions in lib/c/zrlmpi.h. It connects package capi with C: it passes on the calls of
// programs, and calls back their functions. It is built with -buildmode=c-shared, and does nothing when run as
// a program.
package main

// #include <stdint.h>
// #include <stdio.h>
// #include <stdlib.h>
// #include <string.h>
//
// typedef union { int64_t i; void *p; double d; } zrl_arg;
//
// static void reduce(void *f, void *in, void *inout, int64_t n, int wide, uint64_t type, int mpich) {
//     int handle = (int)type, count = (int)n;
//     void *pointer = (void *)(uintptr_t)type;
//     void *of = mpich ? (void *)&handle : (void *)&pointer;
//     if (wide)
//         ((void (*)(void *, void *, int64_t *, void *))f)(in, inout, &n, of);
//     else
//         ((void (*)(void *, void *, int *, void *))f)(in, inout, &count, of);
// }
//
// static int copy(void *f, uint64_t object, int key, void *extra, void *value, void **to, int *keep, int mpich) {
//     if (mpich)
//         return ((int (*)(int, int, void *, void *, void *, int *))f)((int)object, key, extra, value, to, keep);
//     return ((int (*)(void *, int, void *, void *, void *, int *))f)((void *)(uintptr_t)object, key, extra, value, to, keep);
// }
//
// static int delete(void *f, uint64_t object, int key, void *value, void *extra, int mpich) {
//     if (mpich)
//         return ((int (*)(int, int, void *, void *))f)((int)object, key, value, extra);
//     return ((int (*)(void *, int, void *, void *))f)((void *)(uintptr_t)object, key, value, extra);
// }
//
// static void handle(void *f, uint64_t object, int code, int mpich) {
//     int number = (int)object;
//     void *pointer = (void *)(uintptr_t)object;
//     ((void (*)(void *, int *, ...))f)(mpich ? (void *)&number : (void *)&pointer, &code);
// }
//
// static int query(void *f, void *extra, void *status) { return ((int (*)(void *, void *))f)(extra, status); }
//
// static int freed(void *f, void *extra) { return ((int (*)(void *))f)(extra); }
//
// static int cancel(void *f, void *extra, int complete) { return ((int (*)(void *, int))f)(extra, complete); }
//
// typedef long double real;
// typedef struct { real value; int index; } located;
//
// enum { SUM = 1, PROD, MAX, MIN, MAXLOC, MINLOC };
//
// static int reals(int op, const void *from, void *to, int64_t n) {
//     const real *in = from;
//     real *io = to;
//     for (int64_t i = 0; i < n; i++)
//         switch (op) {
//         case SUM: io[i] += in[i]; break;
//         case PROD: io[i] *= in[i]; break;
//         case MAX: if (in[i] > io[i]) io[i] = in[i]; break;
//         case MIN: if (in[i] < io[i]) io[i] = in[i]; break;
//         }
//     return op >= SUM && op <= MIN;
// }
//
// static int complexes(int op, const void *from, void *to, int64_t n) {
//     const _Complex long double *in = from;
//     _Complex long double *io = to;
//     for (int64_t i = 0; i < n; i++)
//         if (op == SUM) io[i] += in[i]; else if (op == PROD) io[i] *= in[i];
//     return op == SUM || op == PROD;
// }
//
// static int pairs(int op, const void *from, void *to, int64_t n) {
//     const located *in = from;
//     located *io = to;
//     for (int64_t i = 0; i < n; i++) {
//         int better = op == MAXLOC ? in[i].value > io[i].value : in[i].value < io[i].value;
//         if (better || (in[i].value == io[i].value && in[i].index < io[i].index))
//             io[i] = in[i];
//     }
//     return op == MAXLOC || op == MINLOC;
// }
// static void *block(size_t size) {
//     void *p;
//     return posix_memalign(&p, 64, size) == 0 ? memset(p, 0, size) : NULL;
// }
//
// extern void zrl_exit(void);
//
// static void at_exit(void) { atexit(zrl_exit); }
import "C"

import (
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/lib/capi"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
)

// library is the Library that the first shim loaded.
var library atomic.Pointer[capi.Library]

//export zrl_load
func zrl_load(abi C.int) unsafe.Pointer {
	which := capi.ABI(abi)
	if library.Load() == nil {
		l := capi.New(which, callbacks{mpich: which == capi.MPICH})
		if b := (*lease.Block)(C.block(C.size_t(unsafe.Sizeof(lease.Block{})))); b != nil {
			l.LeaseTo(b)
		}
		library.CompareAndSwap(nil, l)
	}
	library.Load().Loaded(which)
	return unsafe.Pointer(library.Load().Block())
}

//export zrl_call
func zrl_call(call C.int, args *C.zrl_arg) C.int {
	return C.int(library.Load().Call(int(call), unsafe.Pointer(args)))
}

//export zrl_start
func zrl_start(argc C.int, argv **C.char) C.int {
	args := make([]string, 0, argc)
	for _, arg := range unsafe.Slice(argv, argc) {
		args = append(args, C.GoString(arg))
	}
	return C.int(library.Load().StartLine(args, os.Getenv))
}

//export zrl_statistics
func zrl_statistics(to *C.char, size C.size_t) {
	text := unsafe.Slice((*byte)(unsafe.Pointer(to)), size)
	text[copy(text[:size-1], library.Load().Statistics())] = 0
}

//export zrl_exit
func zrl_exit() { library.Load().Exit() }

// callbacks calls functions of the program.
type callbacks struct{ mpich bool }

func (b callbacks) ints() C.int {
	if b.mpich {
		return 1
	}
	return 0
}

func (b callbacks) Reduce(f, in, inout unsafe.Pointer, count int64, wide bool, datatype uint64) {
	w := C.int(0)
	if wide {
		w = 1
	}
	C.reduce(f, in, inout, C.int64_t(count), w, C.uint64_t(datatype), b.ints())
}

func (b callbacks) Copy(f unsafe.Pointer, object uint64, key int, extra, value unsafe.Pointer) (to unsafe.Pointer, keep bool, code int) {
	var flag C.int
	result := C.copy(f, C.uint64_t(object), C.int(key), extra, value, &to, &flag, b.ints())
	return to, flag != 0, int(result)
}

func (b callbacks) Delete(f unsafe.Pointer, object uint64, key int, value, extra unsafe.Pointer) int {
	return int(C.delete(f, C.uint64_t(object), C.int(key), value, extra, b.ints()))
}

func (b callbacks) Handle(f unsafe.Pointer, object uint64, code int) {
	C.handle(f, C.uint64_t(object), C.int(code), b.ints())
}

func (callbacks) GeneralQuery(f, extra, status unsafe.Pointer) int {
	return int(C.query(f, extra, status))
}

func (callbacks) GeneralFree(f, extra unsafe.Pointer) int { return int(C.freed(f, extra)) }

func (callbacks) GeneralCancel(f, extra unsafe.Pointer, complete bool) int {
	c := C.int(0)
	if complete {
		c = 1
	}
	return int(C.cancel(f, extra, c))
}

// operations maps the names of operations to the numbers that the C functions above use.
var operations = map[string]C.int{"SUM": C.SUM, "PROD": C.PROD, "MAX": C.MAX, "MIN": C.MIN, "MAXLOC": C.MAXLOC, "MINLOC": C.MINLOC}

func (callbacks) LongDouble(operation, datatype string, in, inout unsafe.Pointer, count int64) bool {
	op, n := operations[operation], C.int64_t(count)
	switch datatype {
	case "MPI_LONG_DOUBLE":
		return C.reals(op, in, inout, n) != 0
	case "MPI_LONG_DOUBLE_INT":
		return C.pairs(op, in, inout, n) != 0
	}
	return C.complexes(op, in, inout, n) != 0
}

func (callbacks) Flush() { C.fflush(C.stdout) }

func (callbacks) AtExit() { C.at_exit() }

func (callbacks) Allocate(bytes int64) unsafe.Pointer { return C.malloc(C.size_t(bytes)) }

func (callbacks) Free(p unsafe.Pointer) { C.free(p) }

func main() {}
