/*
 * rawstream measures messages of n bytes sent in one direction, fragmented into datagrams of 1416
 * bytes. A datagram answers each window. Datagrams are sent one by one, or segmented by the kernel
 * (UDP_SEGMENT), or also coalesced by the kernel at the receiver (UDP_GRO). Nothing is
 * retransmitted: to avoid losses, the receiver grants only what fits into its socket.
 * Arguments: window one|segment|gro n:iterations ... Output: see parse.go.
 *
 * Each datagram contains its number. In the first and the last window, all words of the messages
 * are compared.
 */
#include "rawsocket.h"

enum {
	DATAGRAM = 1416,
	BATCH = 46 * DATAGRAM, /* maximum bytes per send call */
	ROOM_PER_BYTE = 4,     /* kernel memory per byte of a datagram, rounded up */
};

static int window, segment, gro;

/* flow is the progress of both processes in the current step, in bytes. */
static struct {
	_Atomic long long taken, done;
} *flow;

static long long room;

static void measure_room(void) {
	int bytes = 0;
	socklen_t length = sizeof bytes;
	raw_check("SO_RCVBUF", getsockopt(raw_socket[1], SOL_SOCKET, SO_RCVBUF, &bytes, &length) < 0);
	room = bytes / ROOM_PER_BYTE;
	if (room < BATCH)
		room = BATCH;
}

static void wait_for(_Atomic long long *value, long long least) {
	unsigned looks = 0;
	while (*value < least)
		raw_spin(&looks);
}

/* stamp writes its number into each datagram of a piece of a message. */
static void stamp(char *data, int size, long long at) {
	for (int i = 0; i < size; i += DATAGRAM) {
		int number = (int)((at + i) / 4);
		memcpy(data + i, &number, sizeof number);
	}
}

static void send_message(char *data, int size, long long start) {
	int step = segment ? BATCH : DATAGRAM;
	for (int i = 0; i < size; i += step) {
		int n = size - i < step ? size - i : step;
		wait_for(&flow->taken, start + i + n - room);
		stamp(data + i, n, start + i);
		raw_send(data + i, n);
	}
}

static void verify(const char *data, int size, long long start, int n, int round, int all) {
	int word;
	for (int i = 0; i < size; i += all ? 4 : DATAGRAM) {
		memcpy(&word, data + i, sizeof word);
		bench_expect(n, round, i / 4, word, i % DATAGRAM == 0 ? (int)((start + i) / 4) : bench_pattern(i / 4, 0));
	}
	raw_verified++;
}

/* recv_message receives a message in pieces. Datagrams are received whole and in order, and a
 * message begins at the start of a datagram. */
static void recv_message(char *data, int size, long long start) {
	for (int i = 0; i < size;) {
		i += raw_recv(data + i, size - i, 1);
		flow->taken = start + i;
	}
}

static void near(struct bench_step s, struct bench_point *p, char *data) {
	double *times = bench_alloc(s.iterations, sizeof *times);
	long long at = 0;

	bench_fill((int *)data, s.n / 4, 0);
	flow->done = 0;
	flow->taken = 0;
	raw_send("", 1); /* begin */
	for (int i = -BENCH_WARMUP_WINDOWS; i < s.iterations; i++) {
		char answer;
		double start = bench_now();
		for (int k = 0; k < window; k++, at += s.n)
			send_message(data, s.n, at);
		if (raw_recv(&answer, 1, 1) != 1)
			bench_fail("step %d, round %d: an answer is empty", s.n, i);
		if (i >= 0)
			times[i] = (bench_now() - start) / window;
		raw_verified++;
	}
	bench_times(p, times, s.iterations);
	free(times);
	wait_for(&flow->done, 1);
}

static void far(struct bench_step s, char *data) {
	long long at = 0;
	char begin;

	if (raw_recv(&begin, 1, 1) != 1)
		bench_fail("step %d: its start is empty", s.n);
	raw_verified++;
	for (int i = -BENCH_WARMUP_WINDOWS; i < s.iterations; i++) {
		for (int k = 0; k < window; k++, at += s.n) {
			recv_message(data, s.n, at);
			verify(data, s.n, at, s.n, i, i == -BENCH_WARMUP_WINDOWS || i == s.iterations - 1);
		}
		raw_send("", 1);
	}
	flow->done = 1;
}

static void step(struct bench_step s, struct bench_point *p) {
	char *data = bench_alloc(bench_words(s.n) + BATCH, 4);
	if (raw_rank == 0)
		near(s, p, data);
	else
		far(s, data);
	free(data);
}

int main(int argc, char **argv) {
	int size = DATAGRAM, one = 1;

	if (argc < 3 || (window = atoi(argv[1])) < 1)
		bench_fail("the arguments are window one|segment|gro n:iterations ...");
	gro = strcmp(argv[2], "gro") == 0;
	segment = gro || strcmp(argv[2], "segment") == 0;
	flow = raw_shared(sizeof *flow);
	raw_open();
	raw_connect();
	measure_room();
	if (segment)
		raw_check("UDP_SEGMENT", setsockopt(raw_socket[0], IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) < 0);
	if (gro)
		raw_check("UDP_GRO", setsockopt(raw_socket[1], IPPROTO_UDP, UDP_GRO, &one, sizeof one) < 0);
	return raw_run(argc - 3, argv + 3, step);
}
