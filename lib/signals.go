package main

// lib/c/signals.c sees the handlers that the program and its libraries install by calls that the loader binds to it.
// The loader does not bind these calls if this library was loaded after the program, for instance by dlopen from an
// interpreter.

// #include <signal.h>
// #include <stddef.h>
//
// // set_on_stack adds SA_ONSTACK to the handlers that have been installed without it.
// static void set_on_stack(void) {
//     for (int sig = 1; sig <= SIGRTMAX; sig++) {
//         struct sigaction action;
//         if (sigaction(sig, NULL, &action) != 0 || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN || action.sa_flags & SA_ONSTACK)
//             continue;
//         action.sa_flags |= SA_ONSTACK;
//         sigaction(sig, &action, NULL);
//     }
// }
import "C"

func (callbacks) HandlersOnStack() { C.set_on_stack() }
