/* Go code runs on small stacks, and so does a thread of the program during an MPI call. A signal handler must run on
   the alternate stack of its thread, which Go provides; this requires SA_ONSTACK. Programs install handlers without
   it, so these functions add it. They are part of every library that programs link with, and precede libc in the
   loader's search. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>

typedef int(sigaction_function)(int, const struct sigaction *, struct sigaction *);

static sigaction_function *libc;

__attribute__((constructor(101))) static void find_libc(void) { *(void **)&libc = dlsym(RTLD_NEXT, "sigaction"); }

/* If a process has several of these libraries, RTLD_NEXT is the next one. */
int sigaction(int sig, const struct sigaction *action, struct sigaction *old) {
    struct sigaction with;
    if (libc == NULL) /* called by a constructor that runs earlier */
        find_libc();
    if (libc == NULL) {
        errno = ENOSYS;
        return -1;
    }
    if (action != NULL && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
        with = *action;
        with.sa_flags |= SA_ONSTACK;
        action = &with;
    }
    return libc(sig, action, old);
}

static sighandler_t install(int sig, sighandler_t handler, int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    sigemptyset(&action.sa_mask);
    if (!(flags & SA_NODEFER) && sigaddset(&action.sa_mask, sig) != 0)
        return SIG_ERR;
    return sigaction(sig, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

sighandler_t signal(int sig, sighandler_t handler) { return install(sig, handler, SA_RESTART); }
sighandler_t bsd_signal(int sig, sighandler_t handler) { return install(sig, handler, SA_RESTART); }
sighandler_t ssignal(int sig, sighandler_t handler) { return install(sig, handler, SA_RESTART); }

/* The signal function of programs compiled with _XOPEN_SOURCE only. */
sighandler_t sysv_signal(int sig, sighandler_t handler) { return install(sig, handler, SA_RESETHAND | SA_NODEFER); }
sighandler_t __sysv_signal(int sig, sighandler_t handler) { return install(sig, handler, SA_RESETHAND | SA_NODEFER); }
