/* Messages that no receive matches yet.

   flood N MODE BYTES: rank 0 starts N sends of BYTES bytes with tag 7, by MPI_Issend if MODE is ssend and by MPI_Isend otherwise, and sends a
   message with tag 8. Rank 1 receives that first, then all others in order. With another argument, each rank prints the time, and the growth
   of its resident memory per message.

   bound N: at most N messages may wait at rank 1 (ZRLMPI_UNEXPECTED). Rank 0 starts sends until one is rejected. Rank 1 then receives all
   accepted messages, and a later one.

   beyond N: at that bound, rank 0 makes every kind of send, each of which is rejected, and cancels a message. Rank 1 receives some messages by
   wildcards and probes. Then every kind of send succeeds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOOD = 7, AFTER = 8, MAX_REFUSED = 3 };

static int rank, size, failed;

static void check(int ok, const char *what, long got)
{
    if (ok)
        return;
    if (failed++ < 5)
        printf("rank %d: %s: %ld\n", rank, what, got);
}

/* memory returns a value from /proc/self/status in bytes. */
static double memory(const char *key)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib * 1024.0;
}

/* A message consists of words integers. The first is its number. */
static int words = 1;

static void receive_all(int n)
{
    int i, k, *values = calloc(words, sizeof *values);

    for (i = 0; i < n; i++) {
        MPI_Recv(values, words, MPI_INT, 0, FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (k = 0; k < words; k++)
            check(values[k] == i + k, "a message is not the next one, but", values[k]);
    }
    free(values);
}

static void after(int value)
{
    int got = value;

    if (rank == 0)
        MPI_Send(&value, 1, MPI_INT, 1, AFTER, MPI_COMM_WORLD);
    else
        MPI_Recv(&got, 1, MPI_INT, 0, AFTER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(got == value, "the later message is", got);
}

/* waiting prints the memory per waiting message. */
static void waiting(int n, double before, double start, int measure)
{
    if (!measure)
        return;
    printf("rank %d: the later message after %.3f s; %.0f B a message\n", rank, MPI_Wtime() - start, (memory("VmRSS") - before) / n);
    fflush(stdout);
}

static void flood(int n, int *values, MPI_Request *requests, int sync, int measure)
{
    double before = memory("VmRSS"), start = MPI_Wtime();
    int i;

    if (rank == 0) {
        for (i = 0; i < n; i++) /* the messages share memory */
            (sync ? MPI_Issend : MPI_Isend)(&values[i], words, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, &requests[i]);
        after(n);
        waiting(n, before, start, measure);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    } else {
        after(n);
        waiting(n, before, start, measure);
        receive_all(n);
    }
    if (measure)
        printf("rank %d: all after %.3f s; %.0f B a message at most\n", rank, MPI_Wtime() - start, (memory("VmHWM") - before) / n);
}

static void bound(int n, int *values, MPI_Request *requests)
{
    int i, code = MPI_SUCCESS, class, accepted = 0, length;
    char text[MPI_MAX_ERROR_STRING] = "";

    if (rank == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        while (accepted < 2 * n && (code = MPI_Isend(&values[accepted], 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, &requests[accepted])) == MPI_SUCCESS)
            accepted++;
        for (i = 0; i < MAX_REFUSED; i++) { /* further sends fail too, even blocking ones */
            MPI_Error_class(code, &class);
            MPI_Error_string(code, text, &length);
            check(class == MPI_ERR_NO_MEM, text, class);
            check(strstr(text, "ZRLMPI_UNEXPECTED") != NULL, text, accepted);
            code = MPI_Send(&values[accepted], 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD);
        }
        check(accepted <= n && accepted >= n / 2, "accepted messages", accepted);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Bcast(&accepted, 1, MPI_INT, 0, MPI_COMM_WORLD); /* collective calls still succeed */
    if (rank == 1)
        receive_all(accepted);
    else
        check(MPI_Waitall(accepted, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall", accepted);
    MPI_Barrier(MPI_COMM_WORLD);
    after(accepted);
}

/* send makes a send of the given kind. Its request, if any, must be inactive or null. */
enum kind { ISEND, ISSEND, IRSEND, SEND, BSEND, IBSEND, START, SSTART, KINDS };

static const char *const kinds[] = {"MPI_Isend", "MPI_Issend", "MPI_Irsend", "MPI_Send", "MPI_Bsend", "MPI_Ibsend", "MPI_Start", "MPI_Start of MPI_Ssend_init"};

static int send(enum kind k, const int *value, MPI_Request *r)
{
    switch (k) {
    case ISEND: return MPI_Isend(value, 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, r);
    case ISSEND: return MPI_Issend(value, 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, r);
    case IRSEND: return MPI_Irsend(value, 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, r);
    case SEND: return MPI_Send(value, 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD);
    case BSEND: return MPI_Bsend(value, 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD);
    case IBSEND: return MPI_Ibsend(value, 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, r);
    default: return MPI_Start(r);
    }
}

/* expect checks the next message with tag FLOOD. */
static void expect(const char *what, int value, int *next)
{
    if (value != *next)
        printf("rank %d: %s: message %d in place of %d\n", rank, what, value, *next), failed++;
    ++*next;
}

/* find receives messages, beginning with number next, by each call that can find them. */
static int find(int next)
{
    int value = -1, flag = 0, count;
    MPI_Message m = MPI_MESSAGE_NULL;
    MPI_Status st;
    MPI_Request r;

    MPI_Irecv(&value, 1, MPI_INT, 0, AFTER, MPI_COMM_WORLD, &r); /* no message matches it */
    MPI_Cancel(&r);
    MPI_Wait(&r, &st);
    MPI_Test_cancelled(&st, &flag);
    check(flag, "a receive is cancelled", flag);
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    check(st.MPI_SOURCE == 0 && st.MPI_TAG == FLOOD, "a wildcard gets tag", st.MPI_TAG);
    expect("MPI_Recv by wildcards", value, &next);
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, FLOOD, MPI_COMM_WORLD, &st);
    expect("MPI_Recv of any source", value, &next);
    MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_INT, &count);
    check(count == 1 && st.MPI_TAG == FLOOD, "MPI_Probe finds elements", count);
    MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    expect("MPI_Recv after MPI_Probe", value, &next);
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &st);
    MPI_Mrecv(&value, 1, MPI_INT, &m, &st);
    expect("MPI_Mprobe", value, &next);
    MPI_Improbe(0, FLOOD, MPI_COMM_WORLD, &flag, &m, &st);
    check(flag, "MPI_Improbe finds a message", flag);
    MPI_Imrecv(&value, 1, MPI_INT, &m, &r);
    MPI_Wait(&r, &st);
    expect("MPI_Improbe", value, &next);
    MPI_Iprobe(0, FLOOD, MPI_COMM_WORLD, &flag, &st);
    check(flag, "MPI_Iprobe finds a message", flag);
    return next;
}

static void beyond(int n, int *values, MPI_Request *requests)
{
    static char buffer[1 << 16];
    int i, next = 0, accepted = 0, flag = 0, code = MPI_SUCCESS, class;
    MPI_Request of[KINDS], last;
    MPI_Status st;
    double start;

    MPI_Buffer_attach(buffer, sizeof buffer);
    if (rank == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        for (i = 0; i < KINDS; i++)
            of[i] = MPI_REQUEST_NULL;
        MPI_Send_init(&values[0], 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, &of[START]);
        MPI_Ssend_init(&values[0], 1, MPI_INT, 1, FLOOD, MPI_COMM_WORLD, &of[SSTART]);
        /* One send in three is synchronous. */
        while (accepted < 2 * n && (code = send(accepted % 3 ? ISEND : ISSEND, &values[accepted], &requests[accepted])) == MPI_SUCCESS)
            accepted++;
        check(accepted <= n && accepted >= n / 2, "accepted messages", accepted);
        for (i = 0; i < KINDS; i++) {
            code = send(i, &values[0], &of[i]);
            MPI_Error_class(code, &class);
            check(class == MPI_ERR_NO_MEM, kinds[i], class);
        }
        /* Cancel the last synchronous send, and start another one instead. */
        i = (accepted - 1) / 3 * 3;
        MPI_Cancel(&requests[i]);
        MPI_Wait(&requests[i], &st);
        MPI_Test_cancelled(&st, &flag);
        check(flag, "a send is cancelled", flag);
        start = MPI_Wtime();
        while ((code = send(ISSEND, &values[accepted], &last)) != MPI_SUCCESS && MPI_Wtime() < start + 10)
            ;
        check(code == MPI_SUCCESS, "a send in the place of a cancelled one", code);
    }
    MPI_Bcast(&accepted, 1, MPI_INT, 0, MPI_COMM_WORLD); /* collective calls still succeed */
    if (rank == 1) {
        for (next = find(0); next < accepted; next++) {
            if (next == (accepted - 1) / 3 * 3)
                continue;
            MPI_Recv(values, 1, MPI_INT, 0, FLOOD, MPI_COMM_WORLD, &st);
            check(values[0] == next, "a message is not the next one, but", values[0]);
        }
        MPI_Recv(values, 1, MPI_INT, 0, FLOOD, MPI_COMM_WORLD, &st);
        check(values[0] == accepted, "the message in the place of a cancelled one is", values[0]);
    } else {
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        check(MPI_Waitall(accepted, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall", accepted);
    }
    for (i = 0; i < KINDS; i++)
        if (rank == 0)
            check(send(i, &values[0], &of[i]) == MPI_SUCCESS, kinds[i], i);
        else {
            MPI_Recv(values, 1, MPI_INT, 0, FLOOD, MPI_COMM_WORLD, &st);
            check(values[0] == 0, kinds[i], values[0]);
        }
    if (rank == 0) {
        MPI_Waitall(KINDS, of, MPI_STATUSES_IGNORE);
        MPI_Request_free(&of[START]);
        MPI_Request_free(&of[SSTART]);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Buffer_detach(&start, &i);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int i, n, *values;
    MPI_Request *requests;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < (argc > 1 && strcmp(argv[1], "flood") ? 3 : 5) || size != 2) {
        fprintf(stderr, "usage: flood flood messages send|ssend bytes [measure] or flood bound|beyond messages, with 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    n = atoi(argv[2]);
    if (argc > 4)
        words = atoi(argv[4]) / sizeof *values;
    values = malloc((2 * n + words) * sizeof *values);
    requests = malloc((2 * n + 1) * sizeof *requests);
    for (i = 0; i < 2 * n + words; i++)
        values[i] = i;
    for (i = 0; i <= 2 * n; i++)
        requests[i] = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(argv[1], "bound"))
        bound(n, values, requests);
    else if (!strcmp(argv[1], "beyond"))
        beyond(n, values, requests);
    else
        flood(n, values, requests, !strcmp(argv[3], "ssend"), argc > 5);
    if (!failed)
        printf("rank %d of %d: ok\n", rank, size);
    free(values);
    free(requests);
    MPI_Finalize();
    return failed != 0;
}
