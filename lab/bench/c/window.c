/*
 * window measures windows: messages that are sent together, and answered by a single message. The
 * receives of a window are posted before the window is requested. It is the counterpart of
 * window.go for any MPI. Rank r of the first half sends to rank r of the second.
 * Arguments: window bytes|pairs n:iterations ... where n is the length of a message, or the number
 * of pairs, which send 4 bytes. Output: see parse.go.
 */
#include "bench.h"

static int window, by_pairs;

/* together is a barrier for the ranks that send. */
static void together(void) {
	int senders = bench_size / 2;

	if (bench_rank > 0) {
		bench_send(0, 0, 0);
		bench_recv(0, 0);
		return;
	}
	for (int r = 1; r < senders; r++)
		bench_recv(r, 0);
	for (int r = 1; r < senders; r++)
		bench_send(0, r, 0);
}

static void sender(struct bench_step s, struct bench_point *p, int count, int peer) {
	int *out = bench_alloc((size_t)window * count, sizeof *out), *mine;
	MPI_Request *sends = bench_alloc(window, sizeof *sends);
	double *times = bench_alloc(s.iterations, sizeof *times), begin = 0;

	for (int k = 0; k < window; k++)
		bench_fill(out + (size_t)k * count, count, 0);
	bench_check("the number after posted receives", s.n, bench_recv(peer, 0), 0);
	for (int i = -BENCH_WARMUP_WINDOWS; i < s.iterations; i++) {
		bench_pace(s, BENCH_WARMUP_WINDOWS + i, BENCH_WARMUP_WINDOWS + s.iterations);
		if (i == 0 && by_pairs) {
			together();
			begin = MPI_Wtime();
		}
		double start = MPI_Wtime();
		for (int k = 0; k < window; k++) {
			mine = out + (size_t)k * count;
			bench_stamp(mine, count, i * window + k);
			MPI_Isend(mine, count, MPI_INT, peer, 0, MPI_COMM_WORLD, &sends[k]);
		}
		MPI_Waitall(window, sends, MPI_STATUSES_IGNORE);
		int answer = bench_recv(peer, 0);
		if (i >= 0)
			times[i] = (MPI_Wtime() - start) / window;
		bench_check("an answer", s.n, answer, ~i);
	}
	if (by_pairs) {
		together();
		p->p50 = (MPI_Wtime() - begin) / ((double)window * s.iterations * s.n);
	} else {
		bench_times(p, times, s.iterations);
	}
	free(out);
	free(sends);
	free(times);
}

static void receiver(struct bench_step s, int count, int peer) {
	int *in = bench_alloc((size_t)2 * window * count, sizeof *in);
	MPI_Request *posted = bench_alloc(2 * window, sizeof *posted);

	for (int i = -BENCH_WARMUP_WINDOWS; i <= s.iterations; i++) {
		int half = (i & 1) * window, last = i - 1;
		if (i > -BENCH_WARMUP_WINDOWS)
			MPI_Waitall(window, posted + (window - half), MPI_STATUSES_IGNORE);
		for (int k = 0; k < window && i < s.iterations; k++)
			MPI_Irecv(in + (size_t)(half + k) * count, count, MPI_INT, peer, 0, MPI_COMM_WORLD, &posted[half + k]);
		if (i == -BENCH_WARMUP_WINDOWS) {
			bench_send(0, peer, 0);
			continue;
		}
		bench_send(~last, peer, 0);
		for (int k = 0; k < window; k++) {
			bench_verify(s.n, last, in + (size_t)(window - half + k) * count, count, last * window + k, 0,
				last == -BENCH_WARMUP_WINDOWS || last == s.iterations - 1);
			bench_verified++;
		}
	}
	free(in);
	free(posted);
}

static void step(struct bench_step s, struct bench_point *p) {
	int pairs = bench_size / 2, count = by_pairs ? 1 : bench_words(s.n);

	if (bench_size % 2 != 0 || (by_pairs && pairs != s.n))
		bench_fail("there are %d ranks for a step of %d", bench_size, s.n);
	if (bench_rank < pairs)
		sender(s, p, count, bench_rank + pairs);
	else
		receiver(s, count, bench_rank - pairs);
}

int main(int argc, char **argv) {
	bench_init(&argc, &argv);
	if (argc < 3 || (window = atoi(argv[1])) < 1)
		bench_fail("the arguments are window bytes|pairs n:iterations ...");
	by_pairs = strcmp(argv[2], "pairs") == 0;
	return bench_run(argc - 3, argv + 3, step);
}
