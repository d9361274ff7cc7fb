/*
 * ring measures a token that travels around all ranks, each of which increments it. It is the
 * counterpart of ring.go for any MPI. Arguments: ranks:iterations ... Output: see parse.go.
 */
#include "bench.h"

static void step(struct bench_step s, struct bench_point *p) {
	int next = (bench_rank + 1) % bench_size, before = (bench_rank + bench_size - 1) % bench_size;
	double *hop = bench_alloc(s.iterations, sizeof *hop);

	if (bench_size != s.n)
		bench_fail("there are %d ranks for a step of %d", bench_size, s.n);
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		bench_pace(s, BENCH_WARMUP + i, BENCH_WARMUP + s.iterations);
		double start = MPI_Wtime();
		if (bench_rank == 0)
			bench_send(i * s.n, next, 0);
		int token = bench_recv(before, 0);
		if (bench_rank == 0 && i >= 0)
			hop[i] = (MPI_Wtime() - start) / s.n;
		if (bench_rank > 0)
			bench_send(token + 1, next, 0);
		bench_check("the token", s.n, token, i * s.n + (bench_rank == 0 ? s.n : bench_rank) - 1);
	}
	bench_times(p, hop, s.iterations);
	free(hop);
}

int main(int argc, char **argv) {
	bench_init(&argc, &argv);
	return bench_run(argc - 1, argv + 1, step);
}
