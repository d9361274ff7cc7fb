/*
 * rawpingpong measures round trips of one datagram between two processes, without any protocol. Both
 * processes poll for the datagram, or both sleep until it is received. The datagram of a step has
 * n bytes plus the length of a packet's header.
 * Arguments: poll|sleep n:iterations ... Output: see parse.go.
 */
#include "rawsocket.h"

enum { HEADER = 32 };

static int polling;

static void step(struct bench_step s, struct bench_point *p) {
	int size = s.n + HEADER, count = bench_words(size), peer = 1 - raw_rank;
	int *out = bench_alloc(count, sizeof *out), *in = bench_alloc(count + 1, sizeof *in);
	double *half = bench_alloc(s.iterations, sizeof *half);

	if (size > RAW_MAX_DATAGRAM)
		bench_fail("%d bytes are more than a datagram holds", size);
	bench_fill(out, count, raw_rank);
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		size_t got;
		bench_stamp(out, count, bench_number(i, raw_rank));
		if (raw_rank == 0) {
			double start = bench_now();
			raw_send(out, size);
			got = raw_recv(in, size + 1, polling);
			if (i >= 0)
				half[i] = (bench_now() - start) / 2;
		} else {
			got = raw_recv(in, size + 1, polling);
			raw_send(out, size);
		}
		if (got != (size_t)size)
			bench_fail("step %d, round %d: %zu bytes instead of %d", s.n, i, got, size);
		bench_verify(s.n, i, in, count, bench_number(i, peer), peer, i == -BENCH_WARMUP || i == s.iterations - 1);
		raw_verified++;
	}
	bench_times(p, half, s.iterations);
	free(out);
	free(in);
	free(half);
}

int main(int argc, char **argv) {
	if (argc < 2 || (strcmp(argv[1], "poll") != 0 && strcmp(argv[1], "sleep") != 0))
		bench_fail("the arguments are poll|sleep n:iterations ...");
	polling = strcmp(argv[1], "poll") == 0;
	raw_open();
	raw_connect();
	return raw_run(argc - 2, argv + 2, step);
}
