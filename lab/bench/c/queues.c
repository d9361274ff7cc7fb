/*
 * queues measures the time of a message that matches none of the posted receives, and the time to
 * match these in reverse order, like the preposted latency benchmark of Underwood and Brightwell
 * (ICPP 2004). It is the counterpart of queues.go for any MPI.
 * Arguments: depth:iterations ... Output: see parse.go.
 */
#include "bench.h"

enum { PING = 1, PONG = 2, CONTROL = 3, FIRST_POSTED = 1000 };

static void step_near(struct bench_step s, struct bench_point *p) {
	double *half = bench_alloc(s.iterations, sizeof *half);

	bench_recv(1, CONTROL); /* the receives are posted */
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		bench_pace(s, BENCH_WARMUP + i, BENCH_WARMUP + s.iterations);
		double start = MPI_Wtime();
		bench_send(i, 1, PING);
		int pong = bench_recv(1, PONG);
		if (i >= 0)
			half[i] = (MPI_Wtime() - start) / 2;
		bench_check("a pong", s.n, pong, ~i);
	}
	p->unload = MPI_Wtime();
	for (int i = s.n - 1; i >= 0; i--)
		bench_send(i, 1, FIRST_POSTED + i);
	bench_recv(1, CONTROL); /* all messages were received */
	p->unload = MPI_Wtime() - p->unload;
	bench_times(p, half, s.iterations);
	free(half);
}

static void step_far(struct bench_step s) {
	MPI_Request *posted = bench_alloc(s.n, sizeof *posted);
	int *values = bench_alloc(s.n, sizeof *values);

	for (int i = 0; i < s.n; i++)
		MPI_Irecv(&values[i], 1, MPI_INT, 0, FIRST_POSTED + i, MPI_COMM_WORLD, &posted[i]);
	bench_send(0, 0, CONTROL);
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		int ping = bench_recv(0, PING);
		bench_send(~i, 0, PONG);
		bench_check("a ping", s.n, ping, i);
	}
	for (int i = 0; i < s.n; i++)
		MPI_Wait(&posted[i], MPI_STATUS_IGNORE);
	bench_send(0, 0, CONTROL);
	for (int i = 0; i < s.n; i++)
		bench_check("a posted receive", s.n, values[i], i);
	free(posted);
	free(values);
}

static void step(struct bench_step s, struct bench_point *p) {
	if (bench_rank == 0)
		step_near(s, p);
	else
		step_far(s);
}

int main(int argc, char **argv) {
	bench_init(&argc, &argv);
	return bench_run(argc - 1, argv + 1, step);
}
