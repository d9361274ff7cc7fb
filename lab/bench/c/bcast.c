/*
 * bcast: broadcasts from rank 0, while rank 1 has so many bytes of its own to send to
 * rank 2, or none. The same as bcast.go, for any MPI. Arguments: the bytes that rank 1
 * sends, then bytes:iterations ... Output: see parse.go.
 */
#include "bench.h"

enum { RANKS = 8, READY = 1, BUSY, TIMES };

static int busy;

/* begin returns when this rank is to call. */
static int begin(int i, int *data, int count, int *own, MPI_Request *request) {
	switch (bench_rank) {
	case 0:
		bench_stamp(data, count, bench_number(i, 0));
		bench_recv(1, READY);
		return 0;
	case 1:
		for (int r = 2; r < RANKS; r++)
			bench_recv(r, READY);
		bench_send(0, 0, READY);
		if (busy == 0)
			return 0;
		bench_stamp(own, busy, bench_number(i, 1));
		MPI_Isend(own, busy, MPI_INT, 2, BUSY, MPI_COMM_WORLD, request);
		return 1;
	case 2:
		if (busy > 0)
			MPI_Irecv(own, busy, MPI_INT, 1, BUSY, MPI_COMM_WORLD, request);
		bench_send(0, 1, READY);
		return busy > 0;
	}
	bench_send(0, 1, READY);
	return 0;
}

static void step(struct bench_step s, struct bench_point *p) {
	int count = bench_words(s.n), *data = bench_alloc(count, sizeof *data), *own = bench_alloc(busy, sizeof *own);
	double *times = bench_alloc(s.iterations, sizeof *times), *ends = bench_alloc(s.iterations, sizeof *ends);
	double *took = bench_alloc(s.iterations, sizeof *took);

	if (bench_size != RANKS)
		bench_fail("there are %d ranks instead of %d", bench_size, RANKS);
	if (bench_rank == 0)
		bench_fill(data, count, 0);
	if (bench_rank == 1)
		bench_fill(own, busy, 1);
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		int all = i == -BENCH_WARMUP || i == s.iterations - 1;
		MPI_Request request;
		int under_way = begin(i, data, count, own, &request);
		double start = bench_now();
		MPI_Bcast(data, count, MPI_INT, 0, MPI_COMM_WORLD);
		double end = bench_now();
		if (i >= 0)
			times[i] = bench_rank == 0 ? start : end;
		if (under_way) {
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			if (bench_rank == 2) {
				bench_verify(s.n, i, own, busy, bench_number(i, 1), 1, all);
				bench_verified++;
			}
		}
		if (bench_rank > 0) {
			bench_verify(s.n, i, data, count, bench_number(i, 0), 0, all);
			bench_verified++;
		}
	}
	if (bench_rank > 0) {
		MPI_Send(times, s.iterations, MPI_DOUBLE, 0, TIMES, MPI_COMM_WORLD);
	} else {
		for (int r = 1; r < RANKS; r++) {
			MPI_Recv(ends, s.iterations, MPI_DOUBLE, r, TIMES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			for (int i = 0; i < s.iterations; i++)
				if (ends[i] - times[i] > took[i])
					took[i] = ends[i] - times[i];
		}
		bench_times(p, took, s.iterations);
	}
	free(data);
	free(own);
	free(times);
	free(ends);
	free(took);
}

int main(int argc, char **argv) {
	bench_init(&argc, &argv);
	if (argc < 2 || (busy = atoi(argv[1])) < 0 || busy % sizeof(int) != 0)
		bench_fail("the arguments are bytes bytes:iterations ...");
	busy /= sizeof(int);
	return bench_run(argc - 2, argv + 2, step);
}
