/* Times calls, for lib/speed.sh: speed ITERATIONS prints lines of a call, its length in bytes, and the time of a call on rank 0 in µs, or of half
   a round trip for sendrecv. The length is the length of a rank's vector, and of a block for allgather and alltoall. Longer calls, in proportion,
   are repeated less often. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 4096 };

static const int lengths[] = {4, 1024, 16384, 1 << 20};
static char *in, *out;
static int rank, ranks;

static void sendrecv(int n)
{
    int peer = rank ^ 1;

    if (rank % 2 == 0) {
        MPI_Send(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
        MPI_Recv(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
    }
}

static void barrier(int n) { (void)n, MPI_Barrier(MPI_COMM_WORLD); }
static void bcast(int n) { MPI_Bcast(in, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void reduce(int n) { MPI_Reduce(in, out, n / 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); }
static void allreduce(int n) { MPI_Allreduce(in, out, n / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }
static void allgather(int n) { MPI_Allgather(in, n, MPI_CHAR, out, n, MPI_CHAR, MPI_COMM_WORLD); }
static void alltoall(int n) { MPI_Alltoall(in, n, MPI_CHAR, out, n, MPI_CHAR, MPI_COMM_WORLD); }

static const struct {
    const char *name;
    void (*call)(int n);
    double halves;
} calls[] = {{"sendrecv", sendrecv, 2}, {"barrier", barrier, 1},     {"bcast", bcast, 1},      {"reduce", reduce, 1},
             {"allreduce", allreduce, 1}, {"allgather", allgather, 1}, {"alltoall", alltoall, 1}};

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 0;
    size_t i, l;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    in = calloc(ranks, 1 << 20), out = calloc(ranks, 1 << 20);
    if (iterations < 1 || ranks % 2 != 0 || !in || !out) {
        fprintf(stderr, "usage: speed ITERATIONS, with an even number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(in, 1, (size_t)ranks << 20), memset(out, 1, (size_t)ranks << 20);
    for (i = 0; i < sizeof calls / sizeof *calls; i++)
        for (l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            int n = lengths[l], k, count = n > SHORT ? (int)(iterations * (double)SHORT / n) + 10 : iterations;
            double start;

            if (calls[i].call == barrier && l > 0)
                break;
            for (k = 0; k < count / 5 + 5; k++)
                calls[i].call(n);
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
            for (k = 0; k < count; k++)
                calls[i].call(n);
            if (rank == 0)
                printf("%s %d %.3f\n", calls[i].name, n, (MPI_Wtime() - start) / count / calls[i].halves * 1e6);
        }
    MPI_Finalize();
    return 0;
}
