/* Implements ZRLMPI.hpp by calls of the standard, with the error handler MPI_ERRORS_ARE_FATAL. */
#include "mpi.h"
#include "zrlmpi.h"
#include <stdio.h>
#include <stdlib.h>

/* The C++ function int app_main(int, char **). It is missing if the program is a library. */
extern int app_main(int, char **) __asm__("_Z8app_mainiPPc") __attribute__((weak));

static int words; /* number of arguments in the start-up line; 0 before MPI_Init */

void zrlmpi_upstream_init(int argc, char **argv) {
    if (words != 0)
        return;
    if ((words = zrl_start(argc, argv)) == 0)
        exit(EXIT_FAILURE);
    PMPI_Init(NULL, NULL);
}

int zrlmpi_upstream_rank(void) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int zrlmpi_upstream_size(void) {
    int size = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

void zrlmpi_upstream_send(const int *data, int count, int datatype, int destination) {
    PMPI_Send(data, count, datatype == 1 ? MPI_FLOAT : MPI_INT32_T, destination, 0, MPI_COMM_WORLD); /* 1 is MPI_FLOAT there */
}

/* Receives bytes, which match both datatypes, because upstream's library marks all messages as INT. */
void zrlmpi_upstream_recv(int *data, int count, int source) {
    PMPI_Recv_c(data, (MPI_Count)count * 4, MPI_BYTE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void zrlmpi_upstream_end(void) {
    int running = 0, ended = 0;
    PMPI_Initialized(&running);
    PMPI_Finalized(&ended);
    if (running && !ended)
        PMPI_Finalize();
}

void zrlmpi_upstream_statistics(void) {
    static char text[1 << 15]; /* enough for 128 ranks */
    zrl_statistics(text, sizeof text);
    fputs(text, stdout);
}

void zrlmpi_upstream_abort(int code) { PMPI_Abort(MPI_COMM_WORLD, code); }

int main(int argc, char **argv) {
    if (app_main == NULL) {
        fprintf(stderr, "zrlmpi: this program has no int app_main(int argc, char **argv)\n");
        return EXIT_FAILURE;
    }
    zrlmpi_upstream_init(argc, argv);
    argv[words - 1] = argv[0];
    (void)app_main(argc - words + 1, argv + words - 1); /* upstream's programs may return nothing */
    zrlmpi_upstream_end();
    return EXIT_SUCCESS;
}
