/* What both programs share. They run on two ranks of any MPI. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BENCH_WARMUP = 20 }; /* as in workload.go */

struct bench_step {
	int n, iterations;
};

static void bench_fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void *bench_alloc(size_t n, size_t size) {
	void *p = calloc(n, size);
	if (p == NULL)
		bench_fail("no memory for %zu times %zu bytes", n, size);
	return p;
}

static int bench_rank(void) {
	int rank, size;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2)
		bench_fail("there are %d ranks instead of 2", size);
	return rank;
}

static struct bench_step bench_step(const char *text) {
	struct bench_step s;
	char end;
	if (sscanf(text, "%d:%d%c", &s.n, &s.iterations, &end) != 2 || s.n < 0 || s.iterations < 1)
		bench_fail("%s: an argument is N:ITERATIONS", text);
	return s;
}

static int bench_compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* bench_point prints what a step has given; times are in seconds. */
static void bench_point(struct bench_step s, double *half, double unload) {
	qsort(half, s.iterations, sizeof *half, bench_compare);
	printf("point %d p50 %.4f p99 %.4f unload %.4f\n", s.n, half[s.iterations / 2] * 1e6,
		half[(long long)s.iterations * 99 / 100] * 1e6, unload * 1e6);
	fflush(stdout);
}
