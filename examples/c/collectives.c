/* Bcast, Scatter, Gather, Reduce and Allreduce over all ranks. Ranks are processes of this program, or FPGAs whose
   program implements these calls as upstream's compiler does, such as collectives_role.c. Rank 0 checks the results. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 1000, SHARE = 100 };

static void check(const char *what, int i, double got, double want)
{
    if (got != want) {
        fprintf(stderr, "%s: number %d is %g, and not %g\n", what, i, got, want);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    int rank, size, common[WORDS], share[SHARE], sum[WORDS];
    float part[WORDS], total[WORDS];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *all = malloc((size_t)size * SHARE * sizeof *all);
    for (int i = 0; i < WORDS; i++)
        common[i] = rank == 0 ? 3 * i : -1;
    for (int i = 0; i < size * SHARE; i++)
        all[i] = rank == 0 ? i : -1;

    MPI_Bcast(common, WORDS, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, SHARE, MPI_INT, share, SHARE, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < SHARE; i++)
        share[i] += common[i];
    MPI_Gather(share, SHARE, MPI_INT, all, SHARE, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < WORDS; i++)
        part[i] = (float)(rank + 1) * (float)common[i];
    MPI_Reduce(part, total, WORDS, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; i < WORDS; i++)
        common[i] *= rank + 1;
    MPI_Allreduce(common, sum, WORDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

    int ranks = size * (size + 1) / 2;
    for (int i = 0; i < WORDS; i++)
        check("Allreduce", i, sum[i], 3 * i * ranks);
    if (rank == 0) {
        for (int i = 0; i < size * SHARE; i++)
            check("Gather", i, all[i], i + 3 * (i % SHARE));
        for (int i = 0; i < WORDS; i++)
            check("Reduce", i, total[i], 3 * i * ranks);
        printf("five collective calls of %d ranks: ok\n", size);
    }
    free(all);
    MPI_Finalize();
    return 0;
}
