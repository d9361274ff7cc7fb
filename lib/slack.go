package main

// A thread of C is one goroutine to Go, which enters Go for each call and leaves it, and is never scheduled anew unless a call waits
// for long. After 10 ms of that, the runtime takes the goroutine for one that does not end: its monitor takes the processor from it
// whenever it computes, and wakes every 20 to 80 µs for that. Each time it interrupts the program's computation, and the next call has
// to find a processor, and wakes the monitor.
//
// How often it wakes follows from the timer slack of its thread (prctl(2)): by so much the kernel may wake it later than it
// asks for. A thread has the slack of the one that made it, so the thread that loads the library has another one while Go's first
// thread is made. Go's timers may be late by as much then. Those of packets are the poller's, which have no slack.

// #include <sys/prctl.h>
//
// enum { SLACK = 10000000 }; // ns: the monitor's longest interval
//
// static int before;
//
// // It is called before Go's start: constructors with a priority are.
// __attribute__((constructor(101))) static void relax(void) {
//     before = prctl(PR_GET_TIMERSLACK);
//     if (before < SLACK) prctl(PR_SET_TIMERSLACK, SLACK);
// }
//
// // It is called after it: Go's object is linked before those of cgo.
// __attribute__((constructor)) static void restore(void) {
//     if (before < SLACK) prctl(PR_SET_TIMERSLACK, before);
// }
import "C"
