/* A program that attaches to a rank through rings, written from docs/attach.md alone. It sends a message
   of BYTES bytes to PEER, which sends it back, TIMES times, and detaches. With "arena", messages are in
   the arena if they fit.

   client SOCKET RANK PEER BYTES TIMES [arena] */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HELLO = 1, WELCOME, PEER, REFUSED, START, DATA, DONE, CANCEL, ABORT, PROBE, BYE };
enum { SEND = 1, SEND_SYNC, RECV };

struct ring {
	uint64_t *written, *read;
	uint32_t *reader_sleeps, *writer_sleeps;
	unsigned char *bytes;
	uint64_t pos; /* bytes written or read by this side */
};

static int fd, memory = -1;
static uint64_t size; /* of a ring */
static uint32_t chunk;
static struct ring out, in;
static unsigned char *arena;
static uint64_t arena_size;
static int placed; /* messages are in the arena: the sent one, followed by the received one */

static void fail(const char *what) {
	fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Numbers have their least significant byte first. */
static void put(unsigned char *b, int n, uint64_t v) {
	for (int i = 0; i < n; i++)
		b[i] = v >> (8 * i) & 255;
}

static uint64_t get(const unsigned char *b, int n) {
	uint64_t v = 0;
	while (n-- > 0)
		v = v << 8 | b[n];
	return v;
}

/* The socket, up to the last PEER. */
static void receive(void *to, size_t n) {
	unsigned char *b = to;
	while (n > 0) {
		union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
		struct iovec part = {b, n};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
		ssize_t k = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
		if (k <= 0)
			fail("the daemon has closed the connection");
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
				memcpy(&memory, CMSG_DATA(c), sizeof memory);
		b += k;
		n -= k;
	}
}

static struct ring ring_of(unsigned char *mem, int number) {
	unsigned char *c = mem + 2048 * number;
	struct ring r = {(uint64_t *)c, (uint64_t *)(c + 128), (uint32_t *)(c + 256), (uint32_t *)(c + 384), mem + 4096 + number * size, 0};
	return r;
}

/* Wakes the side whose flag is set. */
static void wake(uint32_t *flag) {
	uint32_t one = 1;
	if (__atomic_load_n(flag, __ATOMIC_SEQ_CST) != 1 ||
	    !__atomic_compare_exchange_n(flag, &one, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	if (send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		fail("waking the daemon");
}

static uint64_t readable(void) { return __atomic_load_n(in.written, __ATOMIC_SEQ_CST) - in.pos; }
static uint64_t room(void) { return size - (out.pos - __atomic_load_n(out.read, __ATOMIC_SEQ_CST)); }

/* Waits until data can be read or, if want_room is set, until data can be written. */
static void wait_for(int want_room) {
	for (int i = 0; i < 1000; i++)
		if (readable() > 0 || (want_room && room() > 0))
			return;
	char bytes[64];
	while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	__atomic_store_n(in.reader_sleeps, 1, __ATOMIC_SEQ_CST);
	if (want_room)
		__atomic_store_n(out.writer_sleeps, 1, __ATOMIC_SEQ_CST);
	if (readable() > 0 || (want_room && room() > 0))
		return;
	struct pollfd socket = {fd, POLLIN, 0};
	if (poll(&socket, 1, 20000) != 1)
		fail("waiting for the daemon");
	if (recv(fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT) == 0 && readable() == 0)
		fail("the daemon closed the connection");
}

static void ring_read(void *to, size_t n) {
	unsigned char *b = to;
	while (n > 0) {
		uint64_t k = readable(), at = in.pos & (size - 1);
		if (k == 0) {
			wait_for(0);
			continue;
		}
		if (k > n)
			k = n;
		if (k > size - at)
			k = size - at;
		memcpy(b, in.bytes + at, k);
		b += k;
		n -= k;
		in.pos += k;
		__atomic_store_n(in.read, in.pos, __ATOMIC_SEQ_CST);
		if (readable() <= size / 2)
			wake(in.writer_sleeps);
	}
}

/* Frames may arrive while this side waits for space. The program has only one operation and one receive
   in progress, whose answers the daemon keeps, so it need not read frames meanwhile. */
static void ring_write(const void *from, size_t n) {
	const unsigned char *b = from;
	while (n > 0) {
		uint64_t k = room(), at = out.pos & (size - 1);
		if (k == 0) {
			wait_for(1);
			continue;
		}
		if (k > n)
			k = n;
		if (k > size - at)
			k = size - at;
		memcpy(out.bytes + at, b, k);
		b += k;
		n -= k;
		out.pos += k;
		__atomic_store_n(out.written, out.pos, __ATOMIC_SEQ_CST);
		wake(out.reader_sleeps);
	}
}

static void header(unsigned char *b, int frame, uint32_t length) {
	memset(b, 0, 8);
	put(b, 4, length);
	b[4] = frame;
}

static void attach(const char *path, int32_t rank, int wants_arena) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	unsigned char b[327688];
	if (strlen(path) >= sizeof address.sun_path)
		fail("the path is too long");
	strcpy(address.sun_path, path);
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		fail(path);
	header(b, HELLO, 20);
	memcpy(b + 8, "ZRLMPIAT", 8);
	put(b + 16, 4, 5); /* version */
	put(b + 20, 4, rank);
	put(b + 24, 4, wants_arena ? 3 : 1); /* with rings */
	if (send(fd, b, 28, MSG_NOSIGNAL) != 28)
		fail("HELLO");
	receive(b, 8);
	uint32_t length = get(b, 4);
	int frame = b[4];
	if (length > 327680)
		fail("a frame is too long");
	receive(b + 8, length);
	if (frame != WELCOME || length < 40) {
		fprintf(stderr, "client: refused: %.*s\n", (int)length - 2, b + 10);
		exit(1);
	}
	uint32_t ranks = get(b + 16, 4);
	chunk = get(b + 20, 4);
	size = get(b + 40, 8);
	arena_size = length >= 48 ? get(b + 48, 8) : 0;
	for (uint32_t i = 0; i < ranks; i++) {
		receive(b, 8);
		receive(b + 8, get(b, 4));
	}
	if (size == 0 || memory < 0)
		fail("the daemon has no rings");
	unsigned char *mem = mmap(NULL, 4096 + 2 * size + arena_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (mem == MAP_FAILED)
		fail("mapping the rings");
	close(memory);
	arena = mem + 4096 + 2 * size;
	out = ring_of(mem, 0);
	in = ring_of(mem, 1);
}

static void start(uint64_t id, int kind, int32_t peer, const unsigned char *data, uint64_t n) {
	unsigned char b[48];
	uint64_t piece = kind == RECV ? 0 : n < chunk ? n : chunk;
	if (placed)
		piece = 8;
	memset(b, 0, sizeof b);
	header(b, START, 32 + piece);
	put(b + 8, 8, id);
	b[16] = kind;
	b[18] = (kind == RECV) | placed << 1; /* of either datatype; where it lies */
	put(b + 20, 4, peer);
	put(b + 32, 8, n);
	if (placed) {
		put(b + 40, 8, kind == RECV ? n : 0);
		ring_write(b, sizeof b);
		return;
	}
	ring_write(b, 40);
	ring_write(data, piece);
	for (uint64_t sent = piece; kind != RECV && sent < n; sent += piece) {
		piece = n - sent < chunk ? n - sent : chunk;
		header(b, DATA, 8 + piece);
		put(b + 8, 8, id);
		ring_write(b, 16);
		ring_write(data + sent, piece);
	}
}

/* Reads frames until the given number of operations is done. Stores received payload in data. */
static void finish(int operations, unsigned char *data, uint64_t n) {
	uint64_t stored = 0;
	while (operations > 0) {
		unsigned char b[104];
		ring_read(b, 8);
		uint32_t length = get(b, 4);
		int frame = b[4];
		uint32_t fields = frame == DATA ? 8 : 96;
		if ((frame != DATA && frame != DONE) || length < fields) {
			fprintf(stderr, "client: frame %d of %u bytes\n", frame, length);
			exit(1);
		}
		ring_read(b + 8, fields);
		if (frame == DONE && (b[16] & 1)) {
			char text[8192];
			uint32_t error = get(b + 20, 4);
			ring_read(text, error < sizeof text ? error : sizeof text);
			fprintf(stderr, "client: the operation has failed: %.*s\n", (int)get((unsigned char *)text + 8, 4), text + 12);
			exit(1);
		}
		if (frame == DONE && placed)
			stored += get(b + 24, 8); /* no payload is in frames */
		if (length - fields > n - stored)
			fail("payload exceeds the buffer");
		ring_read(data + stored, length - fields);
		stored += length - fields;
		operations -= frame == DONE;
	}
	if (stored != n)
		fail("the message has another length");
}

int main(int argc, char **argv) {
	if (argc != 6 && (argc != 7 || strcmp(argv[6], "arena"))) {
		fprintf(stderr, "usage: client SOCKET RANK PEER BYTES TIMES [arena]\n");
		return 2;
	}
	int32_t peer = atoi(argv[3]);
	uint64_t n = strtoull(argv[4], NULL, 10), times = strtoull(argv[5], NULL, 10);
	unsigned char *data = malloc(n + 1), *back = malloc(n + 1), b[8];
	if (!data || !back)
		fail("memory");
	attach(argv[1], atoi(argv[2]), argc == 7);
	if (argc == 7 && 2 * n <= arena_size) {
		placed = 1;
		data = arena;
		back = arena + n;
	}
	for (uint64_t i = 0; i < times; i++) {
		for (uint64_t at = 0; at < n; at++)
			data[at] = (at * 7 + at / 251 + i) & 255;
		memset(back, 0, n);
		start(2 * i, RECV, peer, NULL, n);
		start(2 * i + 1, SEND, peer, data, n);
		finish(2, back, n);
		if (memcmp(data, back, n)) {
			fprintf(stderr, "client: the echo of message %llu differs\n", (unsigned long long)i);
			return 1;
		}
	}
	header(b, BYE, 0);
	ring_write(b, 8);
	ring_read(b, 8);
	if (b[4] != BYE)
		fail("the answer is not BYE");
	printf("%llu messages of %llu bytes\n", (unsigned long long)times, (unsigned long long)n);
	return 0;
}
