/* The interface between the shims of all ABIs and the library libzrlmpi. */
#ifndef ZRLMPI_H
#define ZRLMPI_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* An argument: integers are sign-extended, pointers and handles are unchanged. */
typedef union {
    int64_t i;
    void *p;
    double d;
} zrl_arg;

enum { ZRL_MPICH = 1, ZRL_STANDARD = 2 };

/* Must be called once, before any call. abi determines handles and constants. Returns the memory that fast.h uses, or
   NULL. */
void *zrl_load(int abi);

/* Performs the call with the given index in functions.txt. args has space for 16 arguments. Returns the error code, and
   stores any other result in args[0]. */
int zrl_call(int call, zrl_arg *args);

/* The result of MPI_Wtime: seconds since the system booted. */
static inline double zrl_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* For the API of upstream's CPU library, with the standard ABI. zrl_start must be called before MPI_Init with the
   program's arguments. It returns the number of arguments in the start-up line, including the program's name, or 0
   after printing an error. zrl_statistics writes the rank's counters as a null-terminated text. */
int zrl_start(int argc, char **argv);
void zrl_statistics(char *text, size_t size);

#endif
