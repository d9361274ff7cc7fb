/*
 * queues: what receives that wait cost a message that is for none of them, and
 * how long it takes to empty them from the back. After the preposted latency
 * benchmark of Underwood and Brightwell (ICPP 2004). The same as queues.go, for
 * any MPI. Arguments: depth:iterations ... Output: see parse.go.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { PING = 1, PONG = 2, CONTROL = 3, FIRST_POSTED = 1000 };

static int rank;
static long long verified;

static void send_int(int value, int tag) {
	MPI_Send(&value, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD);
}

static int recv_int(int tag) {
	int value = -1;
	MPI_Recv(&value, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return value;
}

static void expect(const char *what, int depth, int got, int want) {
	if (got != want)
		bench_fail("depth %d: %s holds %d instead of %d", depth, what, got, want);
	verified++;
}

static void step_near(struct bench_step s) {
	double *half = bench_alloc(s.iterations, sizeof *half), unload;

	recv_int(CONTROL); /* the receives are posted */
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		double start = MPI_Wtime();
		send_int(i, PING);
		int pong = recv_int(PONG);
		if (i >= 0)
			half[i] = (MPI_Wtime() - start) / 2;
		expect("a pong", s.n, pong, ~i);
	}
	unload = MPI_Wtime();
	for (int i = s.n - 1; i >= 0; i--)
		send_int(i, FIRST_POSTED + i);
	recv_int(CONTROL); /* all have arrived */
	unload = MPI_Wtime() - unload;
	verified += recv_int(CONTROL);
	bench_point(s, half, unload);
	free(half);
}

static void step_far(struct bench_step s) {
	/* One more than needed: no size is 0. */
	MPI_Request *posted = bench_alloc(s.n + 1, sizeof *posted);
	int *values = bench_alloc(s.n + 1, sizeof *values);

	verified = 0;
	for (int i = 0; i < s.n; i++)
		MPI_Irecv(&values[i], 1, MPI_INT, 0, FIRST_POSTED + i, MPI_COMM_WORLD, &posted[i]);
	send_int(0, CONTROL);
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		int ping = recv_int(PING);
		send_int(~i, PONG);
		expect("a ping", s.n, ping, i);
	}
	for (int i = 0; i < s.n; i++)
		MPI_Wait(&posted[i], MPI_STATUS_IGNORE);
	send_int(0, CONTROL);
	for (int i = 0; i < s.n; i++)
		expect("a posted receive", s.n, values[i], i);
	send_int((int)verified, CONTROL);
	free(posted);
	free(values);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	rank = bench_rank();
	for (int i = 1; i < argc; i++) {
		struct bench_step s = bench_step(argv[i]);
		if (rank == 0)
			step_near(s);
		else
			step_far(s);
	}
	if (rank == 0)
		printf("verified %lld\n", verified);
	MPI_Finalize();
	return 0;
}
