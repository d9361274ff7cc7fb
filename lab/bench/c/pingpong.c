/*
 * pingpong measures how long messages of one size take. It is the counterpart of pingpong.go for
 * any MPI.
 * Arguments: bytes:iterations ... Output: see parse.go.
 */
#include "bench.h"

static void step(struct bench_step s, struct bench_point *p) {
	int count = bench_words(s.n), peer = 1 - bench_rank;
	int *out = bench_alloc(count, sizeof *out), *in = bench_alloc(count, sizeof *in);
	double *half = bench_alloc(s.iterations, sizeof *half);

	bench_fill(out, count, bench_rank);
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		bench_pace(s, BENCH_WARMUP + i, BENCH_WARMUP + s.iterations);
		bench_stamp(out, count, bench_number(i, bench_rank));
		if (bench_rank == 0) {
			double start = MPI_Wtime();
			MPI_Send(out, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(in, count, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (i >= 0)
				half[i] = (MPI_Wtime() - start) / 2;
		} else {
			MPI_Recv(in, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(out, count, MPI_INT, 0, 0, MPI_COMM_WORLD);
		}
		bench_verify(s.n, i, in, count, bench_number(i, peer), peer, i == -BENCH_WARMUP || i == s.iterations - 1);
		bench_verified++;
	}
	bench_times(p, half, s.iterations);
	free(out);
	free(in);
	free(half);
}

int main(int argc, char **argv) {
	bench_init(&argc, &argv);
	return bench_run(argc - 1, argv + 1, step);
}
