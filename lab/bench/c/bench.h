/* What the programs for MPI share. */
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

/* bench_check verifies a message of one number. */
static void bench_check(const char *what, int n, int got, int want) {
	if (got != want)
		bench_fail("step %d: %s holds %d instead of %d", n, what, got, want);
	bench_verified++;
}

/* bench_run is main: the steps, and what all ranks have counted. Rank 0 prints. */
static int bench_run(int argc, char **argv, void (*step)(struct bench_step, struct bench_point *)) {
	int steps = argc, length = 2 * steps + 1;
	long long *mine = bench_alloc(length, sizeof *mine), *theirs = bench_alloc(length, sizeof *theirs), verified = 0;
	struct bench_step *s = bench_alloc(steps, sizeof *s);
	struct bench_point *p = bench_alloc(steps, sizeof *p);

	for (int i = 0; i < steps; i++) {
		long long cpu = bench_cpu(), before = bench_verified;
		s[i] = bench_step(argv[i]);
		step(s[i], &p[i]);
		mine[2 * i] = bench_cpu() - cpu;
		mine[2 * i + 1] = bench_verified - before;
	}
	mine[length - 1] = bench_memory();
	if (bench_rank > 0) {
		MPI_Send(mine, length, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD);
		MPI_Finalize();
		return 0;
	}
	for (int r = 1; r < bench_size; r++) {
		MPI_Recv(theirs, length, MPI_LONG_LONG, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < length - 1; i++)
			mine[i] += theirs[i];
		if (theirs[length - 1] > mine[length - 1])
			mine[length - 1] = theirs[length - 1];
	}
	for (int i = 0; i < steps; i++) {
		bench_print(s[i].n, &p[i], mine[2 * i], mine[2 * i + 1]);
		verified += mine[2 * i + 1];
	}
	bench_print_sums(mine[length - 1], verified);
	MPI_Finalize();
	return 0;
}

static void bench_init(int *argc, char ***argv) {
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &bench_size);
}
