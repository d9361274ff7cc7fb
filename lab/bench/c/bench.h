/* Shared parts of the programs for MPI. */
#include <mpi.h>

#include "stats.h"

static int bench_rank, bench_size;
static long long bench_verified;

static void bench_fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	bench_complain(format, args);
	va_end(args);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void bench_send(int value, int to, int tag) { MPI_Send(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD); }

static int bench_recv(int from, int tag) {
	int value = -1;
	MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return value;
}

/* bench_check verifies a message that consists of one number. */
static void bench_check(const char *what, int n, int got, int want) {
	if (got != want)
		bench_fail("step %d: %s holds %d instead of %d", n, what, got, want);
	bench_verified++;
}

/* BENCH_PACE_EVERY is in seconds, as in share.go. */
#define BENCH_PACE_EVERY 0.25

/* bench_pace prints progress on rank 0: how many rounds of a step are done. It prints a line before
 * the first round, and later one per interval, so that a fast step prints only the first. */
static void bench_pace(struct bench_step s, int done, int all) {
	static double began, last;
	double now = bench_now();

	if (bench_rank > 0 || (done > 0 && now - last < BENCH_PACE_EVERY))
		return;
	if (done == 0)
		began = now;
	last = now;
	printf("pace %d %d %d %.3f\n", s.n, done, all, now - began);
	fflush(stdout);
}

/* bench_report collects the counts from all ranks after a step. Rank 0 prints them. */
static void bench_report(int n, const struct bench_point *p, long long cpu, long long verified) {
	long long mine[] = {cpu, verified, bench_memory()}, theirs[3];

	if (bench_rank > 0) {
		MPI_Send(mine, 3, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD);
		return;
	}
	for (int r = 1; r < bench_size; r++) {
		MPI_Recv(theirs, 3, MPI_LONG_LONG, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		mine[0] += theirs[0];
		mine[1] += theirs[1];
		if (theirs[2] > mine[2])
			mine[2] = theirs[2];
	}
	bench_print(n, p, mine[0], mine[1]);
	bench_print_sums(mine[2], mine[1]);
}

/* BENCH_WARM is the same as warmPrefix in step.go. */
#define BENCH_WARM "warm:"

/* bench_warm_up runs a step again and again until rank 0 has done so for ms milliseconds, like session.warmUp. */
static void bench_warm_up(struct bench_step s, void (*step)(struct bench_step, struct bench_point *), int ms) {
	double began = bench_now();
	int more;

	do {
		struct bench_point p = {0};
		step(s, &p);
		more = bench_now() - began < ms / 1e3;
		for (int r = 1; r < bench_size && bench_rank == 0; r++)
			bench_send(more, r, 0);
		if (bench_rank > 0)
			more = bench_recv(0, 0);
	} while (more);
}

/* bench_run runs the steps. An argument with the warm-up time may precede them. */
static int bench_run(int steps, char **argv, void (*step)(struct bench_step, struct bench_point *)) {
	int ms = 0;

	if (steps > 1 && sscanf(argv[0], BENCH_WARM "%d", &ms) == 1) {
		argv++;
		steps--;
	}
	if (ms > 0)
		bench_warm_up(bench_step(argv[0]), step, ms);
	for (int i = 0; i < steps; i++) {
		long long cpu = bench_cpu(), before = bench_verified;
		struct bench_step s = bench_step(argv[i]);
		struct bench_point p = {0};
		step(s, &p);
		bench_report(s.n, &p, bench_cpu() - cpu, bench_verified - before);
	}
	MPI_Finalize();
	return 0;
}

static void bench_init(int *argc, char ***argv) {
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &bench_size);
}
