/* Calls that fail, and what is left of them, with MPI_ERRORS_RETURN. Each rank prints "ok", or what was wrong. */
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

/* fails reports whether a code is of a class, and says something. */
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

/* A collective call that the last rank refuses ends on the others. The next call is the same one on all. */
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
    OK(MPI_Barrier(comm)); /* before a rank shuts down, which ends calls as well */
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    refused();
    OK(MPI_Finalize());
    if (!wrong)
        printf("rank %d of %d: ok\n", rank, size);
    return wrong != 0;
}
