/* Programs that hang. The first argument selects one. Each rank first prints its process ID. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, word, sum, line[100000];

static void receive(int from, int tag) { MPI_Recv(&word, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void stay(void)
{
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("%d %d\n", rank, (int)getpid());
    fflush(stdout);
    if (!strcmp(mode, "cycle")) {
        receive((rank + 1) % size, 3);
    } else if (!strcmp(mode, "sends")) {
        MPI_Ssend(line, 100000, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD);
    } else if (!strcmp(mode, "tag")) {
        if (rank == 0)
            MPI_Send(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
        else if (rank == 1)
            receive(0, 5);
    } else if (!strcmp(mode, "order")) {
        if (rank == 1) {
            MPI_Scan(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            MPI_Scan(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        }
    } else if (!strcmp(mode, "root")) {
        MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, rank == 1, MPI_COMM_WORLD);
    } else if (!strcmp(mode, "credit")) {
        if (rank == 0)
            for (;;)
                MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (!strcmp(mode, "fewer")) {
        if (rank == 0)
            MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        if (rank == 1) {
            receive(0, 0);
            receive(0, 0);
        }
    } else if (!strcmp(mode, "short")) { /* after short calls, which finish in C */
        for (int i = 0; i < 1000; i++) {
            if (rank == 0)
                MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            receive(1 - rank, 0);
            if (rank == 1)
                MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
        if (rank == 1)
            receive(0, 0);
    } else if (!strcmp(mode, "late")) { /* after the test has disturbed rank 1 */
        if (rank == 0) {
            getchar();
            MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        }
    } else if (rank != 1) { /* "computes", and modes in which the test disturbs rank 1 */
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    stay();
}
