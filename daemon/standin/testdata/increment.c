/* A complete program for a stand-in rank: receives messages of up to MAX_WORDS
 * integers from rank 0, adds 1 to each and sends them back. The interface is
 * specified in docs/mpe_interface.md.
 *
 *   cc -o increment increment.c        kernel: exec:/path/to/increment
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEND_INT = 0, RECV_INT = 1, OK = 1, MAX_WORDS = 4096, TEXT_WORDS = 256 };

static void put32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t get32(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The stand-in closes our standard input when it ends us. */
static void must_read(void *p, size_t n)
{
	if (n > 0 && fread(p, n, 1, stdin) != 1)
		exit(0);
}

/* One call: writes it and the data of a send, and reads the feedback. Returns
 * the words of a received message, or -1 after FAIL. data has space for
 * MAX_WORDS. */
static long call(int mpi_call, uint32_t count, uint32_t rank, unsigned char *data)
{
	unsigned char head[9], feedback[5], text[4 * TEXT_WORDS];
	uint32_t words;

	head[0] = (unsigned char)mpi_call;
	put32(head + 1, count);
	put32(head + 5, rank);
	fwrite(head, sizeof head, 1, stdout);
	if (mpi_call == SEND_INT)
		fwrite(data, 4, count, stdout);
	fflush(stdout);

	must_read(feedback, sizeof feedback);
	words = get32(feedback + 1);
	if (feedback[0] == OK) {
		must_read(data, 4 * (size_t)words);
		return (long)words;
	}
	must_read(text, 4 * (size_t)words);
	fprintf(stderr, "failed: %.*s\n", (int)(4 * words), (char *)text);
	return -1;
}

int main(void)
{
	static unsigned char data[4 * MAX_WORDS];
	const char *rank = getenv("ZRLMPI_RANK"), *size = getenv("ZRLMPI_SIZE");

	fprintf(stderr, "rank %s of %s\n", rank ? rank : "?", size ? size : "?");
	for (;;) {
		long words = call(RECV_INT, MAX_WORDS, 0, data);
		if (words < 0)
			continue;
		for (long i = 0; i < words; i++)
			put32(data + 4 * i, get32(data + 4 * i) + 1);
		call(SEND_INT, (uint32_t)words, 0, data);
	}
}
