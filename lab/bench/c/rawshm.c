/*
 * rawshm measures messages between two polling processes. One process copies a message into a ring
 * in shared memory, and the other copies it out. With a window of 0, the processes take turns to
 * send. Otherwise messages are sent in one direction, and each window is answered by one message.
 * Arguments: window n:iterations ... Output: see parse.go.
 */
#include "raw.h"

#include <stdatomic.h>

enum { PIECE = 32 << 10, PIECES = 16, LINE = 64 };

/* ring carries messages in one direction. Each end writes to separate cache lines. */
struct ring {
	_Alignas(LINE) _Atomic unsigned long written;
	_Alignas(LINE) _Atomic unsigned long read;
	_Alignas(LINE) char data[PIECES][PIECE];
};

static struct ring *rings; /* [0]: from process 0 to process 1 */
static int window;

static void shm_send(const void *data, size_t size) {
	struct ring *r = &rings[raw_rank];
	for (size_t i = 0; i < size; i += PIECE) {
		size_t n = size - i < PIECE ? size - i : PIECE;
		unsigned long at = atomic_load_explicit(&r->written, memory_order_relaxed);
		unsigned looks = 0;
		while (at - atomic_load_explicit(&r->read, memory_order_acquire) == PIECES)
			raw_spin(&looks);
		memcpy(r->data[at % PIECES], (const char *)data + i, n);
		atomic_store_explicit(&r->written, at + 1, memory_order_release);
	}
}

static void shm_recv(void *data, size_t size) {
	struct ring *r = &rings[1 - raw_rank];
	for (size_t i = 0; i < size; i += PIECE) {
		size_t n = size - i < PIECE ? size - i : PIECE;
		unsigned long at = atomic_load_explicit(&r->read, memory_order_relaxed);
		unsigned looks = 0;
		while (at == atomic_load_explicit(&r->written, memory_order_acquire))
			raw_spin(&looks);
		memcpy((char *)data + i, r->data[at % PIECES], n);
		atomic_store_explicit(&r->read, at + 1, memory_order_release);
	}
}

static void pingpong(struct bench_step s, struct bench_point *p, int *out, int *in, int count, double *half) {
	int peer = 1 - raw_rank;
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		bench_stamp(out, count, bench_number(i, raw_rank));
		if (raw_rank == 0) {
			double start = bench_now();
			shm_send(out, s.n);
			shm_recv(in, s.n);
			if (i >= 0)
				half[i] = (bench_now() - start) / 2;
		} else {
			shm_recv(in, s.n);
			shm_send(out, s.n);
		}
		bench_verify(s.n, i, in, count, bench_number(i, peer), peer, i == -BENCH_WARMUP || i == s.iterations - 1);
		raw_verified++;
	}
	bench_times(p, half, s.iterations);
}

static void stream_near(struct bench_step s, struct bench_point *p, int *out, int count, double *times) {
	int begin;

	shm_recv(&begin, sizeof begin);
	bench_expect(s.n, 0, 0, begin, s.n);
	raw_verified++;
	for (int i = -BENCH_WARMUP_WINDOWS; i < s.iterations; i++) {
		int answer;
		double start = bench_now();
		for (int k = 0; k < window; k++) {
			bench_stamp(out, count, i * window + k);
			shm_send(out, s.n);
		}
		shm_recv(&answer, sizeof answer);
		if (i >= 0)
			times[i] = (bench_now() - start) / window;
		bench_expect(s.n, i, 0, answer, ~i);
		raw_verified++;
	}
	bench_times(p, times, s.iterations);
}

static void stream_far(struct bench_step s, int *in, int count) {
	shm_send(&s.n, sizeof s.n); /* begin */
	for (int i = -BENCH_WARMUP_WINDOWS; i < s.iterations; i++) {
		int answer = ~i;
		for (int k = 0; k < window; k++) {
			shm_recv(in, s.n);
			bench_verify(s.n, i, in, count, i * window + k, 0, i == -BENCH_WARMUP_WINDOWS || i == s.iterations - 1);
			raw_verified++;
		}
		shm_send(&answer, sizeof answer);
	}
}

static void step(struct bench_step s, struct bench_point *p) {
	int count = bench_words(s.n), *out = bench_alloc(count, sizeof *out), *in = bench_alloc(count, sizeof *in);
	double *times = bench_alloc(s.iterations, sizeof *times);

	bench_fill(out, count, raw_rank);
	if (window == 0)
		pingpong(s, p, out, in, count, times);
	else if (raw_rank == 0)
		stream_near(s, p, out, count, times);
	else
		stream_far(s, in, count);
	free(out);
	free(in);
	free(times);
}

int main(int argc, char **argv) {
	if (argc < 2 || (window = atoi(argv[1])) < 0)
		bench_fail("the arguments are window n:iterations ...");
	rings = raw_shared(2 * sizeof *rings);
	return raw_run(argc - 2, argv + 2, step);
}
