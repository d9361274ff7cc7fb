//go:build cgo

package main

// For Go, a C thread is one goroutine. It enters and leaves Go with each call, and is never rescheduled unless
// a call blocks for long. Go's monitor (sysmon) therefore takes the processor away from it whenever the program
// computes for 10 ms. The next call wakes the monitor, which then polls every 20 to 80 µs for some 5 ms, and
// interrupts the program's computation each time.
//
// How often the monitor wakes depends on the timer slack of its thread (prctl(2)), which is the delay that the
// kernel may add to a sleep. A new thread inherits the slack of the thread that creates it. Only the monitor's
// slack is changed, because Go's other threads sleep for 3 µs when they steal a goroutine from another
// processor. The monitor is the second thread that Go creates: the first one runs the Go program, and starts
// the monitor first. This is the case only in a shared library, so lib/build.sh makes the linker substitute
// this function for pthread_create (--wrap), and tests are built without it.
//
// Go's threads block the signals that the program handles, so that signal handlers run in the program's
// threads. The exceptions are signals that the runtime itself unblocks (SIGCHLD, SIGPROF and faults).

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
