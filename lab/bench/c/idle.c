/*
 * idle measures the processor usage of an idle rank, and of a rank that waits for a message, both
 * after the first second. It is the counterpart of idle.go for any MPI.
 * Arguments: milliseconds:1 ... Output: see parse.go.
 */
#include "bench.h"

#include <pthread.h>

static struct {
	double at;
	long long cpu;
} mark;

static void rest(double seconds) {
	struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9)};
	nanosleep(&t, NULL);
}

/* first waits for the first second, which does not count. */
static void *first(void *unused) {
	rest(1);
	mark.at = bench_now();
	mark.cpu = bench_cpu();
	return unused;
}

/* part returns the processor usage since the mark, as a share of one processor. */
static double part(void) { return (bench_cpu() - mark.cpu) / 1e9 / (bench_now() - mark.at); }

static void step(struct bench_step s, struct bench_point *p) {
	if (bench_rank == 0) {
		first(NULL);
		rest(s.n / 1e3);
		p->resting = part();
		bench_send(s.n, 1, 0);
		MPI_Recv(&p->waiting, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	pthread_t watch;
	if (pthread_create(&watch, NULL, first, NULL) != 0)
		bench_fail("a thread cannot be started");
	int got = bench_recv(0, 0);
	pthread_join(watch, NULL);
	double waiting = part();
	bench_check("the number that ends the wait", s.n, got, s.n);
	MPI_Send(&waiting, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
	bench_init(&argc, &argv);
	return bench_run(argc - 1, argv + 1, step);
}
