/* What the shims of all ABIs call. The library libzrlmpi has nothing else for them. */
#ifndef ZRLMPI_H
#define ZRLMPI_H

#include <stdint.h>

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

#endif
