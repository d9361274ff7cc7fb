/*
 * collective measures an operation that all ranks call, while rank 1 may have other data to send
 * to rank 2. It is the counterpart of collective.go for any MPI.
 * Arguments: the operation, the number of ranks, the bytes that rank 1 sends, then
 * bytes:iterations ... Output: see parse.go.
 */
#include "bench.h"

enum { READY = 1, BUSY, TIMES, GO, STAMP_RANKS = 64 };

static enum { BCAST, ALLREDUCE, ALLTOALL, REDUCE, GATHER, OPERATIONS } operation;
static const char *const names[] = {"bcast", "allreduce", "alltoall", "reduce", "gather"};
static int ranks, busy;

/* result reports whether a rank receives a result. */
static int result(int rank) {
	switch (operation) {
	case BCAST:
		return rank > 0;
	case REDUCE:
	case GATHER:
		return rank == 0;
	default:
		return 1;
	}
}

/* gives reports whether a rank contributes data. */
static int gives(int rank) { return operation == BCAST ? rank == 0 : 1; }

/* in_turn reports whether no rank completes a call before all ranks have made it. */
static int in_turn(void) { return gives(1) && result(1); }

/* at_root reports whether only rank 0 receives a result. Without synchronization, other ranks could
 * start further calls before rank 0 has completed this one. */
static int at_root(void) { return !result(1); }

/* sent returns the index of a rank's block k among the blocks of all ranks. */
static int sent(int k) { return operation == ALLTOALL ? bench_rank * ranks + k : bench_rank; }

/* call executes the operation. */
static void call(int *send, int *recv, int count) {
	switch (operation) {
	case BCAST:
		MPI_Bcast(recv, count, MPI_INT, 0, MPI_COMM_WORLD);
		break;
	case ALLREDUCE:
		MPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case ALLTOALL:
		MPI_Alltoall(send, count, MPI_INT, recv, count, MPI_INT, MPI_COMM_WORLD);
		break;
	case REDUCE:
		MPI_Reduce(send, recv, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
		break;
	default:
		MPI_Gather(send, count, MPI_INT, recv, count, MPI_INT, 0, MPI_COMM_WORLD);
	}
}

/* combined returns the expected value of a word in block k of the result. */
static int combined(int k, int i, int word, int stamped) {
	unsigned sum = 0;
	int first = 0, last = ranks - 1;

	if (operation == BCAST)
		last = 0;
	else if (operation == ALLTOALL)
		first = last = k * ranks + bench_rank;
	else if (operation == GATHER)
		first = last = k;
	for (int b = first; b <= last; b++)
		sum += stamped ? (unsigned)i * STAMP_RANKS + (unsigned)b : (unsigned)bench_pattern(word, b);
	return (int)sum;
}

/* check verifies either all words of the result, or the first and the last word of each block. */
static void check(int n, int i, const int *recv, int count, int blocks, int all) {
	for (int k = 0; k < blocks; k++)
		for (int w = 0; w < count; w++) {
			int middle = w > 0 && w < count - 1;
			if (middle && !all) {
				w = count - 1;
				middle = 0;
			}
			bench_expect(n, i, w, recv[(size_t)k * count + w], combined(k, i, w, !middle));
		}
	bench_verified++;
}

/* begin returns when this rank may make the call. */
static int begin(int i, int *own, MPI_Request *request) {
	for (int r = 1; at_root() && bench_rank == 0 && r < ranks; r++)
		bench_send(0, r, GO);
	if (at_root() && bench_rank > 0)
		bench_recv(0, GO);
	switch (bench_rank) {
	case 0:
		bench_recv(1, READY);
		return 0;
	case 1:
		for (int r = 2; r < ranks; r++)
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

/* collect sends the times from all ranks to rank 0, which computes the point of the step. */
static void collect(struct bench_step s, struct bench_point *p, double *starts, double *ends) {
	double *times = bench_alloc(s.iterations, sizeof *times);

	if (bench_rank > 0 && !in_turn())
		MPI_Send(gives(bench_rank) ? starts : ends, s.iterations, MPI_DOUBLE, 0, TIMES, MPI_COMM_WORLD);
	for (int i = 0; i < s.iterations && !result(0); i++)
		ends[i] = 0;
	for (int r = 1; r < ranks && bench_rank == 0 && !in_turn(); r++) {
		MPI_Recv(times, s.iterations, MPI_DOUBLE, r, TIMES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < s.iterations; i++) {
			if (gives(r) && times[i] < starts[i])
				starts[i] = times[i];
			if (!gives(r) && times[i] > ends[i])
				ends[i] = times[i];
		}
	}
	for (int i = 0; i < s.iterations; i++)
		times[i] = ends[i] - starts[i];
	if (bench_rank == 0)
		bench_times(p, times, s.iterations);
	free(times);
}

static void step(struct bench_step s, struct bench_point *p) {
	int count = bench_words(s.n), warmup = s.iterations < BENCH_WARMUP ? s.iterations : BENCH_WARMUP;
	int sends = operation == ALLTOALL ? ranks : 1, receives = operation == ALLTOALL || operation == GATHER ? ranks : 1;
	int *recv = bench_alloc((size_t)receives * count, sizeof *recv);
	int *send = operation == BCAST ? recv : bench_alloc((size_t)sends * count, sizeof *send);
	int *own = bench_alloc(busy, sizeof *own);
	double *starts = bench_alloc(s.iterations, sizeof *starts), *ends = bench_alloc(s.iterations, sizeof *ends);

	if (bench_size != ranks)
		bench_fail("there are %d ranks instead of %d", bench_size, ranks);
	for (int k = 0; k < sends; k++)
		bench_fill(send + (size_t)k * count, count, sent(k));
	if (bench_rank == 1)
		bench_fill(own, busy, 1);
	for (int i = -warmup; i < s.iterations; i++) {
		int all = i == -warmup || i == s.iterations - 1;
		MPI_Request request;
		int under_way = 0;
		bench_pace(s, warmup + i, warmup + s.iterations);
		double start = bench_now();
		for (int k = 0; k < sends && (operation != BCAST || bench_rank == 0); k++)
			bench_stamp(send + (size_t)k * count, count, i * STAMP_RANKS + sent(k));
		if (!in_turn()) {
			under_way = begin(i, own, &request);
			start = bench_now();
		}
		call(send, recv, count);
		double end = bench_now();
		if (i >= 0) {
			starts[i] = start;
			ends[i] = end;
		}
		if (under_way) {
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			if (bench_rank == 2) {
				bench_verify(s.n, i, own, busy, bench_number(i, 1), 1, all);
				bench_verified++;
			}
		}
		if (result(bench_rank))
			check(s.n, i, recv, count, receives, all);
	}
	collect(s, p, starts, ends);
	if (send != recv)
		free(send);
	free(recv);
	free(own);
	free(starts);
	free(ends);
}

int main(int argc, char **argv) {
	bench_init(&argc, &argv);
	while (argc > 1 && operation < OPERATIONS && strcmp(argv[1], names[operation]) != 0)
		operation++;
	if (argc < 4 || operation == OPERATIONS || (ranks = atoi(argv[2])) < 2 || (busy = atoi(argv[3])) < 0 || busy % sizeof(int) != 0)
		bench_fail("the arguments are operation ranks bytes bytes:iterations ...");
	busy /= sizeof(int);
	return bench_run(argc - 4, argv + 4, step);
}
