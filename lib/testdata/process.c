/* What a program does besides MPI: it loads the library itself, starts another process while it is a rank, and takes signals, of which many
   arrive while a call of the library runs. Handlers are installed with SA_ONSTACK, as docs/c.md asks for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static volatile sig_atomic_t before, after;

static void count_before(int s) { (void)s, before++; }
static void count_after(int s) { (void)s, after++; }

static void handle(int number, void (*f)(int)) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = f;
    a.sa_flags = SA_ONSTACK | SA_RESTART;
    CHECK(sigaction(number, &a, NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
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

    handle(SIGUSR1, count_before);
    CHECK(Init(&argc, &argv) == MPI_SUCCESS);
    handle(SIGALRM, count_after);
    int rank, size, got = -1;
    Comm_rank(MPI_COMM_WORLD, &rank);
    Comm_size(MPI_COMM_WORLD, &size);

    /* A process that is started does not share what this one has with the others. */
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
    CHECK(before == MESSAGES && after > 0);
    CHECK(Finalize() == MPI_SUCCESS);
    printf("rank %d of %d: ok\n", rank, size);
    return 0;
}
