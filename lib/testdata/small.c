/* Each rank sends a word to the next one, and all ranks check that it was received. With "finalize", rank 1 ends at once, and the others send to
   it later; with "blocked", it waits in MPI_Finalize for a send that nobody receives. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, from = -1, wrong, some;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) {
        static char large[1 << 20];
        MPI_Request request;
        if (rank == 1 && !strcmp(argv[1], "blocked")) {
            MPI_Isend(large, sizeof large, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
        if (rank != 1)
            MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_Ssend(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong = from != (rank + size - 1) % size;
    MPI_Allreduce(&wrong, &some, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: %s\n", rank, size, some ? "wrong" : "ok");
    MPI_Finalize();
    return some;
}
