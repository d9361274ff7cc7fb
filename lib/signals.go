package main

// lib/c/signals.c sees the signal handlers that the program and its libraries install, because the loader binds
// their calls to it. The loader does not do so if this library is loaded after the program, for instance by
// dlopen from an interpreter.

// #include <signal.h>
// #include <stddef.h>
//
// // set_on_stack adds SA_ONSTACK to the handlers that have been installed without it. sigaction resolves
// // to lib/c/signals.c, which sets the flag itself, or to libc if this library was loaded by dlopen.
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
