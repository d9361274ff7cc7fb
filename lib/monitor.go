//go:build cgo

package main

// A thread of C is one goroutine to Go, which enters Go for each call and leaves it, and is never scheduled anew unless a call waits
// for long. So Go's monitor (sysmon) takes the processor from it whenever it computes for 10 ms, and the next call wakes the monitor, which
// then looks every 20 to 80 µs for some 5 ms: each time it interrupts the program's computation.
//
// How often it wakes follows from the timer slack of its thread (prctl(2)): by so much the kernel may wake it later than it asks for. A
// thread has the slack of the one that makes it. Only the monitor's is changed: the others of Go sleep for 3 µs where they take a goroutine
// from another processor. It is the second thread that Go makes: the first one runs the Go program, and begins with the monitor. That is so in
// a shared library, so lib/build.sh has the linker put this in the place of pthread_create (--wrap), and tests are built without.
//
// Go's threads block the signals that the program handles, but for those that the runtime unblocks itself (SIGCHLD,
// SIGPROF and those of faults): handlers run in the program's threads.

// #include <pthread.h>
// #include <signal.h>
// #include <sys/prctl.h>
//
// enum { SLACK = 10000000 }; // ns: the monitor's longest interval
//
// void zrlmpi_no_thread(void);
//
// // There is none without --wrap.
// int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) __attribute__((weak));
//
// // Go's pthread_create. The program's own is another one: it is not linked with this library's objects.
// int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg) {
//     static int made, program; // program: the slack of the program's thread that has loaded the library
//     int own = prctl(PR_GET_TIMERSLACK), n = __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED); // before the thread makes another one
//     if (n == 0) program = own;
//     prctl(PR_SET_TIMERSLACK, n == 1 && program < SLACK ? SLACK : program);
//     sigset_t mask, before;
//     if (n == 0) { // Go's other threads begin with the mask of its first one
//         sigfillset(&mask);
//         sigdelset(&mask, SIGURG); // by which Go's scheduler interrupts a goroutine
//         pthread_sigmask(SIG_BLOCK, &mask, &before);
//     }
//     int code = __real_pthread_create(thread, attributes, start, arg);
//     if (n == 0) pthread_sigmask(SIG_SETMASK, &before, NULL);
//     prctl(PR_SET_TIMERSLACK, own);
//     if (code != 0) {
//         __atomic_fetch_sub(&made, 1, __ATOMIC_RELAXED); // Go tries again
//         zrlmpi_no_thread();
//     }
//     return code;
// }
import "C"
