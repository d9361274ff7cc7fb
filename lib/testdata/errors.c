/* Calls that fail with MPI_ERRORS_RETURN, and the state after them. Each rank prints "ok" or the failed checks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

#define CHECK(x)                                                                      \
    do {                                                                              \
        if (!(x)) {                                                                   \
            printf("rank %d, line %d: not so: %s\n", rank, __LINE__, #x);             \
            wrong++;                                                                  \
        }                                                                             \
    } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

/* fails reports whether an error code has the given class and a text that contains says. */
static int fails(int code, int class, const char *says)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, is;
    MPI_Error_class(code, &is);
    MPI_Error_string(code, text, &length);
    if (is == class && strstr(text, says))
        return 1;
    printf("rank %d: class %d, not %d: %s\n", rank, is, class, text);
    return 0;
}

/* If the last rank rejects a collective call, it fails on the other ranks too. The next call matches on all ranks. */
static void refused(void)
{
    int bad = rank == size - 1, sum = 0, one = 1, class = MPI_ERR_COUNT;
    char says[40] = "the count is -1";
    MPI_Comm comm;
    MPI_Request r;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < 100; i++) {
        if (!bad)
            snprintf(says, sizeof says, "rank %d has abandoned Allreduce", size - 1);
        CHECK(fails(MPI_Allreduce(&one, &sum, bad ? -1 : 1, MPI_INT, MPI_SUM, comm), class, says));
        if (MPI_Iallreduce(&one, &sum, bad ? -1 : 1, MPI_INT, MPI_SUM, comm, &r) == MPI_SUCCESS)
            CHECK(fails(MPI_Wait(&r, MPI_STATUS_IGNORE), class, says));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == size);
    }
    CHECK(fails(MPI_Allreduce(&one, &sum, 1, bad ? MPI_FLOAT : MPI_INT, MPI_BAND, comm), MPI_ERR_OP, bad ? "BAND" : says));
    OK(MPI_Barrier(comm)); /* before a rank shuts down, which would make calls of other ranks fail as well */
    OK(MPI_Comm_free(&comm));
}

/* Numbers in the format external32 have the lengths that the standard defines. */
static void external(void)
{
    long double in = 1.5L, out = 0;
    long n = -2, back = 0;
    unsigned char buffer[20];
    MPI_Aint position = 0, size;
    OK(MPI_Pack_external("external32", &in, 1, MPI_LONG_DOUBLE, buffer, sizeof buffer, &position));
    OK(MPI_Pack_external("external32", &n, 1, MPI_LONG, buffer, sizeof buffer, &position));
    CHECK(position == 20 && buffer[0] == 0x3f && buffer[1] == 0xff && buffer[2] == 0x80 && buffer[16] == 0xff && buffer[19] == 0xfe);
    position = 0;
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &out, 1, MPI_LONG_DOUBLE));
    OK(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &back, 1, MPI_LONG));
    CHECK(position == 20 && out == in && back == n);
    OK(MPI_Pack_external_size("external32", 3, MPI_LONG, &size));
    CHECK(size == 12);
    n = 1L << 40;
    position = 0;
    CHECK(fails(MPI_Pack_external("external32", &n, 1, MPI_LONG, buffer, sizeof buffer, &position), MPI_ERR_CONVERSION, "does not fit"));
}

/* Partitioned messages around a ring of ranks, with partitions marked ready one by one. */
static void partitioned(void)
{
    enum { PARTS = 8, EACH = 1000 };
    static int out[PARTS * EACH], in[PARTS * EACH];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, flag, list[2] = {6, 0};
    MPI_Request r[2];
    OK(MPI_Psend_init(out, PARTS, EACH, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(in, PARTS, EACH, MPI_INT, previous, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PARTS * EACH; i++)
            out[i] = rank + round * i;
        OK(MPI_Startall(2, r));
        OK(MPI_Pready(7, r[0]));
        OK(MPI_Pready_range(1, 5, r[0]));
        CHECK(fails(MPI_Pready(7, r[0]), MPI_ERR_ARG, "ready already"));
        OK(MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        OK(MPI_Pready_list(2, list, r[0]));
        for (int part = 0; part < PARTS; part++)
            do {
                OK(MPI_Parrived(r[1], part, &flag));
            } while (!flag);
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        for (int i = 0; i < PARTS * EACH; i++)
            if (in[i] != previous + round * i) {
                CHECK(in[i] == previous + round * i);
                break;
            }
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

static int handled, handled_code;
static MPI_Session handled_session;

static void handler(MPI_Session *s, int *code, ...)
{
    handled++;
    handled_session = *s;
    MPI_Error_class(*code, &handled_code);
}

/* Sessions start and end the use of MPI, repeatedly. Their errors go to their error handler. */
static void session(void)
{
    MPI_Session s;
    MPI_Group group, none;
    MPI_Comm comm;
    MPI_Errhandler h, is;
    int sum, one = 1, before = handled;
    OK(MPI_Session_create_errhandler(handler, &h));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    CHECK(fails(MPI_Group_from_session_pset(s, "mpi://NONE", &none), MPI_ERR_ARG, "no process set"));
    OK(MPI_Session_set_errhandler(s, h));
    OK(MPI_Session_get_errhandler(s, &is));
    CHECK(is == h);
    OK(MPI_Errhandler_free(&h));
    OK(MPI_Errhandler_free(&is));
    CHECK(handled == before);
    CHECK(fails(MPI_Group_from_session_pset(s, "mpi://NONE", &none), MPI_ERR_ARG, "no process set"));
    CHECK(handled == before + 1 && handled_session == s && handled_code == MPI_ERR_ARG);
    OK(MPI_Session_call_errhandler(s, MPI_ERR_TAG));
    CHECK(handled == before + 2 && handled_code == MPI_ERR_TAG);
    OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "errors.c", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size);
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&s));
    CHECK(s == MPI_SESSION_NULL);
}

int main(int argc, char **argv)
{
    session();
    session();
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    refused();
    external();
    partitioned();
    session();
    OK(MPI_Finalize());
    session();
    if (!wrong)
        printf("rank %d of %d: ok\n", rank, size);
    return wrong != 0;
}
