/* Passes messages around, as examples/ring does: from rank 0 to rank 1, from each rank to the next, and from the
   last one back to rank 0. The other ranks also run this program, or are FPGAs or stand-ins with the kernel ring. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, lengths[] = {1, 1000, 65536}, rounds = argc > 1 ? atoi(argv[1]) : 100;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int k = 0; k < 3; k++) {
        int words = lengths[k];
        int *message = malloc(words * sizeof *message), *back = malloc(words * sizeof *back);
        double start = MPI_Wtime();
        for (int round = 1; round <= rounds; round++) {
            if (rank == 0) {
                for (int i = 0; i < words; i++)
                    message[i] = round;
                MPI_Sendrecv(message, words, MPI_INT, next, 0, back, words, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                if (back[0] != round || back[words - 1] != round) {
                    fprintf(stderr, "message %d of %d words came back from rank %d changed\n", round, words, previous);
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
            } else {
                MPI_Recv(back, words, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(back, words, MPI_INT, next, 0, MPI_COMM_WORLD);
            }
        }
        if (rank == 0)
            printf("%5d words: mean of a round %.1f us, of a hop %.1f us\n", words, (MPI_Wtime() - start) / rounds * 1e6,
                   (MPI_Wtime() - start) / rounds / size * 1e6);
        free(message);
        free(back);
    }
    MPI_Finalize();
    return 0;
}
