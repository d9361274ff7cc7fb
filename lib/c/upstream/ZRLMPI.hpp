/* The C++ API of upstream's CPU library (cloudFPGA/ZRLMPI), for running its programs on this library: docs/upstream.md.
   A message has count words of 32 bits. Tags are not transmitted, and calls terminate the program instead of returning
   an error. */
#ifndef ZRLMPI_HPP
#define ZRLMPI_HPP

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t MPI_Status;
typedef uint8_t MPI_Comm;
typedef uint8_t MPI_Datatype;

#define MPI_COMM_WORLD 0
#define MPI_INTEGER 0
#define MPI_FLOAT 1
#define MPI_STATUS_IGNORE 0

extern "C" {
void zrlmpi_upstream_init(int argc, char **argv);
int zrlmpi_upstream_rank(void);
int zrlmpi_upstream_size(void);
void zrlmpi_upstream_send(const int *data, int count, int datatype, int destination);
void zrlmpi_upstream_recv(int *data, int count, int source);
void zrlmpi_upstream_end(void);
void zrlmpi_upstream_statistics(void);
void zrlmpi_upstream_abort(int code);
}

/* The program. The library provides main, which removes the start-up line from the arguments. */
int app_main(int argc, char **argv);

/* Only the first call has an effect: usually main's, or the program's if it does not use main, such as a Python
   module. */
inline void MPI_Init(int *argc, char ***argv) {
    zrlmpi_upstream_init(argc ? *argc : 0, argv ? *argv : NULL);
}

inline void MPI_Init() { zrlmpi_upstream_init(0, NULL); }

inline void MPI_Comm_rank(MPI_Comm, int *rank) { *rank = zrlmpi_upstream_rank(); }

inline void MPI_Comm_size(MPI_Comm, int *size) { *size = zrlmpi_upstream_size(); }

inline void MPI_Send(int *data, int count, MPI_Datatype datatype, int destination, int, MPI_Comm) {
    zrlmpi_upstream_send(data, count, datatype, destination);
}

/* Sets the status to 1. */
inline void MPI_Recv(int *data, int count, MPI_Datatype, int source, int, MPI_Comm, MPI_Status *status) {
    zrlmpi_upstream_recv(data, count, source);
    if (status != NULL)
        *status = 1;
}

inline void ZRLMPI_cleanup() { zrlmpi_upstream_end(); }

inline void ZRLMPI_print_stats() { zrlmpi_upstream_statistics(); }

inline void MPI_Finalize() {
    zrlmpi_upstream_end();
    zrlmpi_upstream_statistics();
}

/* Not in upstream's API: terminates the program with a code. */
inline void MPI_Abort(MPI_Comm, int code) { zrlmpi_upstream_abort(code); }

/* Upstream's compiler generates these for MPI_Reduce. */
inline void MPI_SUM_INTEGER(int32_t *sum, int32_t *more, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)more[i]);
}

inline void MPI_SUM_FLOAT(float *sum, float *more, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        sum[i] += more[i];
}

/* Copies bytes, rounded up to whole words. */
inline void my_memcpy(int *to, int *from, uint32_t bytes) {
    memmove(to, from, (bytes + sizeof(int) - 1) / sizeof(int) * sizeof(int));
}

#endif
