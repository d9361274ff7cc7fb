// Signal handlers of a program while it sends messages: "usr1" raises SIGUSR1 in every tenth message, "alrm" and "prof" set timers of 1 kHz,
// "outside" waits for N signals from another process. "late" installs the handler by libc's own sigaction before MPI_Init.
// "foreign" checks that no signal arrives that nobody sent, such as a signal by which the library interrupts itself.
// In all modes, the handlers check that they run on the alternate stack.
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t signals, off_stack;
static volatile char seen[64];

// A handler with a frame larger than a goroutine's stack.
static void handle(int sig) {
    char text[20000];
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_ONSTACK))
        off_stack = sig;
    snprintf(text, sizeof text, "%19900d: signal %d, %.17g", (int)signals, sig, 1e300);
    memcpy((char *)seen, text + 19890, sizeof seen);
    signals++;
}

static volatile sig_atomic_t foreign;

static void count(int sig) { foreign = sig; }

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "usr1";
    int late = strcmp(mode, "late") == 0, rank, size, x = 0, y = 0, from[2] = {0}, all[2] = {0};
    sigset_t mask;
    if (late) {
        void *libc = dlopen("libc.so.6", RTLD_NOW);
        int (*install)(int, const struct sigaction *, struct sigaction *);
        struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
        *(void **)&install = dlsym(libc, "sigaction");
        install(SIGALRM, &action, NULL);
    } else {
        signal(SIGUSR1, handle);
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    for (int sig = 1; sig < 32; sig++)
        if (sigismember(&mask, sig)) {
            printf("the library blocks signal %d in the program's thread\n", sig);
            return 1;
        }
    MPI_Init(&argc, &argv);
    if (!late) {
        signal(SIGALRM, handle);
        signal(SIGPROF, handle);
        raise(SIGUSR1);
        raise(SIGPROF);
    }
    raise(SIGALRM);
    if (off_stack) { // exit before a signal arrives in an MPI call, where its handler could corrupt memory
        printf("after MPI_Init, the handler of signal %d ran off the alternate stack\n", (int)off_stack);
        return 1;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    if (late || strcmp(mode, "alrm") == 0)
        setitimer(ITIMER_REAL, &timer, NULL);
    if (strcmp(mode, "prof") == 0)
        setitimer(ITIMER_PROF, &timer, NULL);
    if (strcmp(mode, "outside") == 0) {
        printf("process %d\n", (int)getpid());
        fflush(stdout);
    }
    if (strcmp(mode, "foreign") == 0) {
        for (int sig = 1; sig < 32; sig++)
            if (sig != SIGKILL && sig != SIGSTOP && sig != SIGCHLD && sig != SIGALRM)
                signal(sig, count);
        argv[1] = NULL, argc = 1;
        for (int i = 0; i < 10; i++) { // while one rank is late
            if (i % size == rank)
                usleep(30000);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    // Until each rank has received its signals.
    for (int most = argc > 2 ? atoi(argv[2]) : argc > 1 ? 100 : 0; !all[0];) {
        for (int i = 0; i < 200; i++) {
            x = i * size + rank;
            MPI_Sendrecv(&x, 1, MPI_INT, (rank + 1) % size, 0, &y, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (y != i * size + (rank + size - 1) % size)
                from[1] = 1;
            if (i % 10 == 0 && strcmp(mode, "usr1") == 0)
                kill(getpid(), SIGUSR1);
        }
        from[0] = signals >= most;
        MPI_Allreduce(&from[0], &all[0], 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&from[1], &all[1], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
    MPI_Finalize();
    if (off_stack) {
        printf("the handler of signal %d ran off the alternate stack\n", (int)off_stack);
        return 1;
    }
    if (foreign) {
        printf("signal %d, which nobody has sent\n", (int)foreign);
        return 1;
    }
    printf("%s\n", all[1] ? "wrong" : "ok");
    return all[1];
}
