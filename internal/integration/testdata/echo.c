/* A program for kernel exec: sends back what rank 0 sends, in calls of up to MAX_WORDS
 * words. See docs/mpe_interface.md. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEND_INT = 0, RECV_INT = 1, OK = 1, HEAD = 9, FEEDBACK = 5, MAX_WORDS = 3000000 };

static unsigned char data[4 * MAX_WORDS];

static uint32_t call(int mpi_call, uint32_t count)
{
	unsigned char head[HEAD] = { (unsigned char)mpi_call }, feedback[FEEDBACK];
	uint32_t words;

	for (int i = 0; i < 4; i++)
		head[1 + i] = (unsigned char)(count >> 8 * i);
	fwrite(head, sizeof head, 1, stdout);
	if (mpi_call == SEND_INT)
		fwrite(data, 4, count, stdout);
	fflush(stdout);
	if (fread(feedback, sizeof feedback, 1, stdin) != 1)
		exit(0); /* the stand-in ends us */
	words = feedback[1] | (uint32_t)feedback[2] << 8 | (uint32_t)feedback[3] << 16 | (uint32_t)feedback[4] << 24;
	if (words > MAX_WORDS || fread(data, 4, words, stdin) != words)
		exit(1);
	if (feedback[0] != OK) {
		fprintf(stderr, "failed: %.*s\n", (int)(4 * words), (char *)data);
		exit(1);
	}
	return words;
}

int main(void)
{
	for (;;)
		call(SEND_INT, call(RECV_INT, MAX_WORDS));
}
