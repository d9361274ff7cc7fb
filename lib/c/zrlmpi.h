/* What the shims of all ABIs call. The library libzrlmpi has nothing else for them. */
#ifndef ZRLMPI_H
#define ZRLMPI_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* An argument: integers with their sign, pointers and handles as they are. */
typedef union {
    int64_t i;
    void *p;
    double d;
} zrl_arg;

enum { ZRL_MPICH = 1, ZRL_STANDARD = 2 };

/* Once, before any call: whose handles and constants are used. */
void zrl_load(int abi);

/* The call of a line of functions.txt, with room for 16 arguments. It returns its error code. A result that is no
   error code is in args[0]. */
int zrl_call(int call, zrl_arg *args);

/* The time of MPI_Wtime, in seconds: since the system has started. */
static inline double zrl_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* For the API of upstream's CPU library, with the standard ABI. zrl_start takes the program's arguments, before MPI_Init, and returns how
   many of them are the start-up line with the program's name: 0 after it has printed why they are none. zrl_statistics writes the
   rank's counters as text, with a 0 at its end. */
int zrl_start(int argc, char **argv);
void zrl_statistics(char *text, size_t size);

#endif
