/* Messages that the wire of an FPGA cannot carry are rejected before anything is sent. Ranks 0 and 1 are processes, and rank 2 is
   an FPGA that returns the messages of rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FPGA = 2 };

static int rank, failed;

/* wants checks the class of an error, and that its text contains word. */
static void wants(const char *call, int code, int class, const char *word)
{
    int is, length;
    char text[MPI_MAX_ERROR_STRING];

    MPI_Error_class(code, &is);
    MPI_Error_string(code, text, &length);
    if (is != class || !strstr(text, word)) {
        printf("rank %d: %s: class %d, and not %d: %s (%s)\n", rank, call, is, class, text, word);
        failed = 1;
    }
}

/* echo checks that no earlier message was sent to the FPGA. */
static void echo(int n, int tag)
{
    int to[2] = {n, -n}, back[2] = {0, 0};

    wants("MPI_Send", MPI_Send(to, 2, MPI_INT, FPGA, tag, MPI_COMM_WORLD), MPI_SUCCESS, "");
    wants("MPI_Recv", MPI_Recv(back, 2, MPI_INT, FPGA, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS, "");
    if (back[0] != n || back[1] != -n) {
        printf("the FPGA has sent %d, %d, and not %d\n", back[0], back[1], n);
        failed = 1;
    }
}

static void messages(void)
{
    char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int words[8] = {0}, flag, count, i = 0;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    MPI_Datatype three;

    wants("MPI_Send of 3 bytes", MPI_Send(bytes, 3, MPI_CHAR, FPGA, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "words");
    wants("MPI_Send of nothing", MPI_Send(words, 0, MPI_INT, FPGA, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "empty");
    wants("MPI_Isend of 5 bytes", MPI_Isend(bytes, 5, MPI_BYTE, FPGA, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT, "words");
    wants("MPI_Ssend of nothing", MPI_Ssend(words, 0, MPI_INT, FPGA, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "empty");
    wants("MPI_Recv of 3 shorts", MPI_Recv(bytes, 3, MPI_SHORT, FPGA, 0, MPI_COMM_WORLD, &status), MPI_ERR_COUNT, "words");
    wants("MPI_Recv from any source with a tag", MPI_Recv(words, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status), MPI_ERR_TAG, "any tag");
    wants("MPI_Sendrecv of 2 bytes", MPI_Sendrecv(bytes, 2, MPI_CHAR, FPGA, 0, bytes + 4, 4, MPI_CHAR, FPGA, 0, MPI_COMM_WORLD, &status), MPI_ERR_COUNT, "words");
    MPI_Type_contiguous(3, MPI_CHAR, &three);
    MPI_Type_commit(&three);
    wants("MPI_Send of a type of 3 bytes", MPI_Send(bytes, 1, three, FPGA, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "words");
    MPI_Type_free(&three);
    echo(7, 0);

    /* the length of a message is unknown until it is received, and matched probes are not supported */
    words[0] = 77;
    MPI_Send(words, 1, MPI_INT, FPGA, 3, MPI_COMM_WORLD);
    MPI_Probe(FPGA, 3, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    if (count != MPI_UNDEFINED || status.MPI_SOURCE != FPGA) {
        printf("a probe of the FPGA's message has %d from %d\n", count, status.MPI_SOURCE);
        failed = 1;
    }
    wants("MPI_Improbe", MPI_Improbe(FPGA, 3, MPI_COMM_WORLD, &flag, &message, &status), MPI_ERR_COMM, "use Probe");
    MPI_Recv(&i, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    if (i != 77 || count != 1 || status.MPI_SOURCE != FPGA) {
        printf("the FPGA's message is %d, of %d words from %d\n", i, count, status.MPI_SOURCE);
        failed = 1;
    }
    echo(8, 3);

    /* a message longer than the receive buffer */
    MPI_Send(words, 8, MPI_INT, FPGA, 0, MPI_COMM_WORLD);
    wants("MPI_Recv of a longer message", MPI_Recv(words, 4, MPI_INT, FPGA, 0, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE, "");
    echo(9, 1);
}

static void communicators(void)
{
    MPI_Comm made;
    MPI_Request request;
    MPI_Group world, all, cpus;
    int dims[1] = {3}, periods[1] = {0}, ranks[2] = {0, 1}, sum = 0, one = rank + 1;

    wants("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &made), MPI_ERR_COMM, "carries no communicators");
    wants("MPI_Comm_idup", MPI_Comm_idup(MPI_COMM_WORLD, &made, &request), MPI_ERR_COMM, "carries no communicators");
    wants("MPI_Comm_split", MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made), MPI_ERR_COMM, "carries no communicators");
    wants("MPI_Comm_split_type", MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made), MPI_ERR_COMM, "carries no communicators");
    wants("MPI_Cart_create", MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &made), MPI_ERR_COMM, "carries no communicators");
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    all = world;
    wants("MPI_Comm_create", MPI_Comm_create(MPI_COMM_WORLD, all, &made), MPI_ERR_COMM, "carries no communicators");
    wants("MPI_Comm_create_group", MPI_Comm_create_group(MPI_COMM_WORLD, all, 0, &made), MPI_ERR_COMM, "carries no communicators");

    /* a communicator of only the processes has no limits */
    MPI_Group_incl(world, 2, ranks, &cpus);
    wants("MPI_Comm_create_group", MPI_Comm_create_group(MPI_COMM_WORLD, cpus, 0, &made), MPI_SUCCESS, "");
    wants("MPI_Allreduce", MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made), MPI_SUCCESS, "");
    if (sum != 3) {
        printf("the sum of the processes is %d\n", sum);
        failed = 1;
    }
    MPI_Group_free(&cpus);
    MPI_Group_free(&world);
    MPI_Comm_free(&made);
}

static void collectives(void)
{
    char bytes[12] = {0};
    short shorts[6] = {0};
    int words[3] = {0};

    /* a broadcast without elements sends nothing */
    wants("MPI_Bcast of nothing", MPI_Bcast(words, 0, MPI_INT, 0, MPI_COMM_WORLD), MPI_SUCCESS, "");
    if (rank != 0)
        return; /* the calls of the root are rejected before it sends anything */
    wants("MPI_Bcast of 3 bytes", MPI_Bcast(bytes, 3, MPI_CHAR, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "multiple of 4");
    wants("MPI_Scatter of 1 short", MPI_Scatter(shorts, 1, MPI_SHORT, shorts + 4, 1, MPI_SHORT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "multiple of 4");
    wants("MPI_Gather of 2 bytes", MPI_Gather(bytes, 2, MPI_BYTE, bytes + 6, 2, MPI_BYTE, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "multiple of 4");
    wants("MPI_Reduce of 3 bytes", MPI_Reduce(bytes, bytes + 4, 3, MPI_SIGNED_CHAR, MPI_SUM, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "multiple of 4");
    wants("MPI_Allreduce of 1 short", MPI_Allreduce(shorts, shorts + 1, 1, MPI_SHORT, MPI_MAX, MPI_COMM_WORLD), MPI_ERR_COUNT, "multiple of 4");
}

static void others(void)
{
    MPI_Win win;
    int word;

    wants("MPI_Win_create", MPI_Win_create(&word, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Win_create");
}

int main(int argc, char **argv)
{
    int size, token = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    communicators();
    collectives();
    others();
    if (rank == 0) {
        messages();
        MPI_Send(&token, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!failed)
        printf("rank %d of %d: ok\n", rank, size);
    MPI_Finalize();
    return failed;
}
