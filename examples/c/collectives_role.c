/* The role of an FPGA for collectives.c, as the kernel exec: of a stand-in. Each collective call consists of the Send
   and Recv that upstream's compiler generates for it. docs/mpe_interface.md describes the interface.

     cc -o collectives_role collectives_role.c        --stand-in exec:/path/to/collectives_role */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEND_INT, RECV_INT, SEND_FLOAT, RECV_FLOAT, OK = 1, ROOT = 0, WORDS = 1000, SHARE = 100 };

static void must_read(void *p, size_t n)
{
    if (n > 0 && fread(p, n, 1, stdin) != 1)
        exit(0); /* end of file: the stand-in is gone */
}

/* call makes a call with words in this machine's byte order, which must be the wire's: least significant byte first. */
static void call(uint8_t number, uint32_t count, void *words)
{
    uint8_t head[9] = {number}, feedback[5];
    uint32_t rank = ROOT, n;
    char text[1025];

    memcpy(head + 1, &count, 4);
    memcpy(head + 5, &rank, 4);
    fwrite(head, sizeof head, 1, stdout);
    if (number == SEND_INT || number == SEND_FLOAT)
        fwrite(words, 4, count, stdout);
    fflush(stdout);
    must_read(feedback, sizeof feedback);
    memcpy(&n, feedback + 1, 4);
    if (feedback[0] == OK) {
        must_read(words, 4 * (size_t)n);
        return;
    }
    must_read(text, 4 * (size_t)n);
    text[4 * n] = 0;
    fprintf(stderr, "call %d failed: %s\n", number, text);
    exit(1);
}

int main(void)
{
    static int32_t common[WORDS], share[SHARE];
    static float part[WORDS];
    int rank = atoi(getenv("ZRLMPI_RANK"));

    call(RECV_INT, WORDS, common); /* Bcast */
    call(RECV_INT, SHARE, share);  /* Scatter */
    for (int i = 0; i < SHARE; i++)
        share[i] += common[i];
    call(SEND_INT, SHARE, share); /* Gather */
    for (int i = 0; i < WORDS; i++)
        part[i] = (float)(rank + 1) * (float)common[i];
    call(SEND_FLOAT, WORDS, part); /* Reduce */
    for (int i = 0; i < WORDS; i++)
        common[i] *= rank + 1;
    call(SEND_INT, WORDS, common); /* Allreduce: a Reduce and a Bcast */
    call(RECV_INT, WORDS, common);
    return 0;
}
