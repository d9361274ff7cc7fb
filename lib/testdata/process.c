/* A program that loads the library with dlopen, starts another process while it is a rank, and handles signals, many of which
   arrive during calls of the library. MPI_Init adds SA_ONSTACK to the handler of SIGUSR1. The handlers installed later set it
   themselves, as docs/c.md requires. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(ok) \
    do { \
        if (!(ok)) { \
            printf("line %d: %s\n", __LINE__, #ok); \
            exit(1); \
        } \
    } while (0)

#define MESSAGES 20000

static volatile sig_atomic_t before, before_on_stack, after;

static void count_before(int s) {
    stack_t stack;
    (void)s, before++;
    if (sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK) before_on_stack++;
}

static void count_after(int s) { (void)s, after++; }

static void handle(int number, void (*f)(int), int flags) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = f;
    a.sa_flags = flags | SA_RESTART;
    CHECK(sigaction(number, &a, NULL) == 0);
}

/* The timer slack of the thread that handles the signal. Without privileges, only the thread itself may read it. */
static volatile long slack;

static void read_slack(int s) { (void)s, slack = prctl(PR_GET_TIMERSLACK); }

/* late returns the thread of this process that may be woken 10 ms late, 0 if no thread may, and -1 if several may. */
static int late(void) {
    int found = 0;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads != NULL);
    handle(SIGPROF, read_slack, SA_ONSTACK); /* Go's threads do not block this signal */
    for (struct dirent *e; (e = readdir(threads)) != NULL;) {
        int thread = atoi(e->d_name);
        slack = 0;
        if (thread == 0 || syscall(SYS_tgkill, getpid(), thread, SIGPROF) != 0) continue; /* the thread has exited */
        for (int tries = 0; slack == 0; tries++) {
            CHECK(tries < 10000);
            usleep(1000); /* a signal from Go's monitor may end it early */
        }
        if (slack >= 10000000) found = found == 0 ? thread : -1;
    }
    closedir(threads);
    return found;
}

/* call returns the system call that a thread waits in, or -1. */
static int call(int thread) {
    char path[64];
    int number = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    if (fscanf(f, "%d", &number) != 1) number = -1; /* the thread is running */
    fclose(f);
    return number;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int own = prctl(PR_GET_TIMERSLACK);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
#define LOAD(name) __typeof__(&MPI_##name) name = (__typeof__(&MPI_##name))dlsym(library, "MPI_" #name)
    LOAD(Init);
    LOAD(Finalize);
    LOAD(Comm_rank);
    LOAD(Comm_size);
    LOAD(Sendrecv);
    LOAD(Barrier);
    CHECK(Init && Finalize && Comm_rank && Comm_size && Sendrecv && Barrier);

    handle(SIGUSR1, count_before, 0);
    CHECK(Init(&argc, &argv) == MPI_SUCCESS);
    raise(SIGUSR1);
    CHECK(before_on_stack == 1);
    handle(SIGALRM, count_after, SA_ONSTACK);
    int rank, size, got = -1;
    Comm_rank(MPI_COMM_WORLD, &rank);
    Comm_size(MPI_COMM_WORLD, &size);

    /* Only Go's monitor may be woken late. It is the thread that sleeps for some time while the program makes calls. */
    CHECK(prctl(PR_GET_TIMERSLACK) == own);
    int monitor = late();
    CHECK(monitor > 0);
    for (int tries = 0; call(monitor) != SYS_nanosleep; tries++) {
        CHECK(tries < 1000000);
        Comm_rank(MPI_COMM_WORLD, &rank);
    }

    /* A child process does not share the connections of this process to the other ranks. */
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);

    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int i = 0; i < MESSAGES; i++) {
        int sent = i + rank;
        CHECK(Sendrecv(&sent, 1, MPI_INT, next, 0, &got, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(got == i + previous);
        raise(SIGUSR1);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK(before == MESSAGES + 1 && before_on_stack == before && after > 0);
    CHECK(Finalize() == MPI_SUCCESS);
    printf("rank %d of %d: ok\n", rank, size);
    return 0;
}
