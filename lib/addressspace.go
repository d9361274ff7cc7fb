package main

// Go's runtime reserves address space before the first Go function runs. If that fails, it ends the process
// with a stack trace. A constructor that runs before Go's therefore compares the limit with the amount needed.
// All shims, Fortran and upstream's API load this library, so the check is needed only here.
//
// The amount needed depends on the limit. The runtime reserves 512 MiB for an index of its scavenger. If that fails, it
// instead maps the index at fixed addresses from 256 MiB to 512 MiB, overwriting whatever is mapped there; the
// constructor therefore checks that nothing is. If the limit allows for the index but not for the later reservations,
// the constructor occupies the space of the index until the runtime has started, so that the runtime uses the fixed
// addresses.
//
// glibc's malloc reserves an arena of 64 MiB for each thread. If there is a limit, the constructor allows only
// as many arenas as fit in half of the remaining address space.
//
// The runtime also ends the process with a stack trace if it cannot open the descriptors of its poller.

// #include <errno.h>
// #include <malloc.h>
// #include <pthread.h>
// #include <stdint.h>
// #include <stdio.h>
// #include <stdlib.h>
// #include <sys/eventfd.h>
// #include <sys/mman.h>
// #include <sys/resource.h>
// #include <unistd.h>
//
// static const size_t RUNTIME = 800ul << 20;   // of Go 1.26 without index and threads: 685 to 749 MiB, and two ranks
// static const size_t SUMMARIES = 585ul << 20; // part of it, reserved before the index
// static const size_t INDEX = 512ul << 20;
// static const uintptr_t FIXED = 256ul << 20;  // address of an index that is not reserved; it ends before twice that
// static const size_t THREADS = 8;             // of Go
// static const size_t ARENA = 128ul << 20;     // reserved for a moment to make an aligned one
//
// static void *filler;
// static size_t filled;
//
// // used returns the size of the process's address space in bytes.
// static size_t used(void) {
//     size_t pages = 0;
//     FILE *f = fopen("/proc/self/statm", "re");
//     if (f == NULL) return 0;
//     if (fscanf(f, "%zu", &pages) != 1) pages = 0;
//     fclose(f);
//     return pages * (size_t)sysconf(_SC_PAGESIZE);
// }
//
// // keep_fixed_unused reports whether nothing is mapped at the fixed addresses, and keeps the heap of a program below from growing into them.
// static int keep_fixed_unused(void) {
//     int unused = 1;
//     size_t page = (size_t)sysconf(_SC_PAGESIZE);
//     char line[512];
//     FILE *f = fopen("/proc/self/maps", "re");
//     if (f == NULL) return 0;
//     while (unused && fgets(line, sizeof line, f) != NULL) {
//         unsigned long from, to;
//         if (sscanf(line, "%lx-%lx ", &from, &to) == 2) unused = to <= FIXED || from >= 2 * FIXED;
//     }
//     fclose(f);
//     if (unused && (uintptr_t)sbrk(0) < FIXED) // it ends at what is mapped, and malloc uses other memory then
//         unused = mmap((void *)(FIXED - page), page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED;
//     return unused;
// }
//
// // stack returns the size of the stack of a thread in bytes.
// static size_t stack(void) {
//     pthread_attr_t attributes;
//     size_t size = 0;
//     pthread_attr_init(&attributes);
//     pthread_attr_getstacksize(&attributes, &size);
//     pthread_attr_destroy(&attributes);
//     return size;
// }
//
// // limited returns the limit of the address space in bytes, or 0 if there is none.
// static size_t limited(void) {
//     struct rlimit limit;
//     return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
// }
//
// static void limit_arenas(size_t left) {
// #ifdef M_ARENA_MAX
//     size_t most = left / 2 / ARENA;
//     if (getenv("MALLOC_ARENA_MAX") == NULL && most < 8 * (size_t)sysconf(_SC_NPROCESSORS_ONLN))
//         mallopt(M_ARENA_MAX, most > 0 ? (int)most : 1);
// #endif
// }
//
// // check_descriptors ends the process unless there are descriptors for Go's runtime.
// static void check_descriptors(void) {
//     enum { NEED = 4 }; // two of its poller, and at most two for the limits of the control group
//     int fds[NEED], n = 0, error;
//     struct rlimit limit;
//     while (n < NEED && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0) n++;
//     error = errno;
//     for (int i = 0; i < n; i++) close(fds[i]);
//     if (n == NEED || error != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
//     fprintf(stderr, "zrlmpi: the limit of %llu file descriptors is reached: raise it (ulimit -n)\n", (unsigned long long)limit.rlim_cur);
//     _exit(1);
// }
//
// __attribute__((constructor(101))) static void check_limits(void) {
//     check_descriptors();
//     size_t limit = limited(), have = used(), room = RUNTIME + THREADS * stack();
//     if (limit == 0) return;
//     if (limit < have + room + INDEX) {
//         int without = room - stack() < SUMMARIES + INDEX && keep_fixed_unused();
//         size_t need = have + room + (without ? 0 : INDEX);
//         if (limit < need) {
//             fprintf(stderr, "zrlmpi: the address space of this process is limited to %zu KiB, and the MPI library needs %zu KiB: raise the limit (ulimit -v)\n",
//                     limit >> 10, need >> 10);
//             _exit(1);
//         }
//         filled = (limit - need) & -(size_t)sysconf(_SC_PAGESIZE);
//         if (filled > 0) filler = mmap(NULL, filled, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
//         if (filler == MAP_FAILED) filler = NULL; // something else has taken it
//     }
//     limit_arenas(limit > have + room ? limit - have - room : 0);
// }
//
// // zrlmpi_started gives the room back, and returns how many threads fit into a quarter of what is left; -1 without a limit.
// static int zrlmpi_started(void) {
//     if (filler != NULL) munmap(filler, filled);
//     filler = NULL;
//     size_t limit = limited(), have = used();
//     if (limit == 0) return -1;
//     return limit > have ? (int)((limit - have) / 4 / stack()) : 0;
// }
//
// // zrlmpi_no_thread names the limit if it is why a thread could not be made.
// void zrlmpi_no_thread(void) {
//     static int said;
//     size_t limit = limited(), have = used();
//     if (limit == 0 || have + stack() < limit || __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) return;
//     fprintf(stderr, "zrlmpi: a thread needs %zu KiB, and the address space of this process is limited to %zu KiB, of which %zu KiB are in use: raise the limit (ulimit -v)\n",
//             stack() >> 10, limit >> 10, have >> 10);
// }
import "C"
import "runtime"

// The Go runtime is running here. It creates one thread for each processor that it uses. Their stacks may occupy a
// quarter of the remaining address space.
func init() {
	if threads := int(C.zrlmpi_started()); threads >= 0 && threads < runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(max(threads, leastProcessors))
	}
}
