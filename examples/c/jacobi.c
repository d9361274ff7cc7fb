/* Jacobi iterations on a grid of integers: each inner cell becomes the mean of its four neighbours. Rank 0 has the grid;
   in each iteration it sends every other rank its lines, with one line before and one after them, and receives the new
   lines. Workers are processes of this program, FPGAs with upstream's example, or stand-ins with the kernel jacobi.

     jacobi [width [iterations]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BORDER = 128 };

static int width, lines; /* of the grid, and of each worker */

/* step computes the inner lines of a block. */
static void step(const int *from, int *to, int count)
{
    for (int y = 1; y <= count; y++)
        for (int x = 0; x < width; x++) {
            const int *at = from + y * width + x;
            int inner = x > 0 && x < width - 1;
            to[y * width + x] = inner ? (at[-1] + at[1] + at[-width] + at[width]) >> 2 : *at;
        }
}

static void work(void)
{
    size_t block = (size_t)(lines + 2) * width;
    int iterations, *from = calloc(block, sizeof *from), *to = calloc(block, sizeof *to);

    MPI_Recv(&iterations, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (; iterations > 0; iterations--) {
        for (int y = 0; y < lines + 2; y++)
            MPI_Recv(from + y * width, width, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        step(from, to, lines);
        for (int y = 0; y < lines + 2; y++)
            MPI_Send(to + y * width, width, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    free(from);
    free(to);
}

/* start returns a grid with extra lines at the end, because shares are rounded up. */
static int *start(int workers)
{
    int *grid = (int *)calloc((size_t)(workers * lines + 2) * width, sizeof *grid) + width;
    for (int y = 0; y < width; y++)
        for (int x = 0; x < width; x++)
            grid[y * width + x] = y == 0 || y == width - 1 || x == 0 || x == width - 1 ? BORDER : 0;
    return grid;
}

static void host(int workers, int iterations)
{
    int *grid = start(workers), *block = calloc((size_t)(lines + 2) * width, sizeof *block);
    MPI_Request *requests = malloc((size_t)workers * (lines + 2) * sizeof *requests);
    double began = MPI_Wtime();

    for (int w = 1; w <= workers; w++)
        MPI_Send(&iterations, 1, MPI_INT, w, 0, MPI_COMM_WORLD);
    for (int i = 0; i < iterations; i++) {
        int n = 0;
        for (int w = 1; w <= workers; w++)
            for (int y = 0; y < lines + 2; y++)
                MPI_Isend(grid + ((w - 1) * lines + y - 1) * width, width, MPI_INT, w, 0, MPI_COMM_WORLD, requests + n++);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        for (int w = 1; w <= workers; w++) {
            for (int y = 0; y < lines + 2; y++)
                MPI_Recv(block + y * width, width, MPI_INT, w, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int y = 1; y <= lines; y++) {
                int line = (w - 1) * lines + y - 1;
                if (line > 0 && line < width - 1)
                    memcpy(grid + line * width + 1, block + y * width + 1, (width - 2) * sizeof *grid);
            }
        }
    }
    double took = MPI_Wtime() - began;

    /* the same computation on this processor */
    int *one = start(workers), *next = start(workers);
    for (int i = 0; i < iterations; i++) {
        step(one, next, width - 2);
        memcpy(one + width, next + width, (size_t)(width - 2) * width * sizeof *one);
    }
    for (int i = 0; i < width * width; i++)
        if (one[i] != grid[i]) {
            fprintf(stderr, "cell %d, %d is %d, and not %d\n", i / width, i % width, grid[i], one[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    printf("%d x %d cells, %d iterations, %d workers: %.3f s, as on one processor\n", width, width, iterations, workers, took);
    free(one - width);
    free(next - width);
    free(grid - width);
    free(block);
    free(requests);
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    width = argc > 1 ? atoi(argv[1]) : 512;
    if (size < 2 || width < 3) {
        fprintf(stderr, "at least two ranks, and a width of 3\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    lines = (width + size - 2) / (size - 1);
    if (rank == 0)
        host(size - 1, argc > 2 ? atoi(argv[2]) : 10);
    else
        work();
    MPI_Finalize();
    return 0;
}
