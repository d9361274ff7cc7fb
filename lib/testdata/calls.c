/* Calls of each family of the standard, with known results. Each rank prints "ok" or the failed checks. */
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

static void point_to_point(void)
{
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, n, flag, out[3] = {rank, 2, 3}, in[3];
    MPI_Status st;
    MPI_Request r[4];

    OK(MPI_Sendrecv(out, 3, MPI_INT, next, 1, in, 3, MPI_INT, previous, 1, MPI_COMM_WORLD, &st));
    OK(MPI_Get_count(&st, MPI_INT, &n));
    CHECK(in[0] == previous && n == 3 && st.MPI_SOURCE == previous && st.MPI_TAG == 1);

    OK(MPI_Irecv(in, 3, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Issend(out, 2, MPI_INT, next, 2, MPI_COMM_WORLD, &r[1]));
    r[2] = MPI_REQUEST_NULL;
    MPI_Status all[3];
    OK(MPI_Waitall(3, r, all));
    OK(MPI_Get_count(&all[0], MPI_INT, &n));
    CHECK(n == 2 && r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);

    OK(MPI_Isend(out, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Probe(previous, MPI_ANY_TAG, MPI_COMM_WORLD, &st));
    CHECK(st.MPI_TAG == 3);
    MPI_Message m;
    OK(MPI_Mprobe(previous, 3, MPI_COMM_WORLD, &m, &st));
    OK(MPI_Mrecv(in, 3, MPI_INT, &m, &st));
    CHECK(m == MPI_MESSAGE_NULL && in[0] == previous);
    OK(MPI_Waitany(1, r, &n, MPI_STATUS_IGNORE));
    CHECK(n == 0);
    OK(MPI_Waitany(1, r, &n, &st));
    CHECK(n == MPI_UNDEFINED);

    OK(MPI_Recv_init(in, 1, MPI_INT, previous, 4, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Send_init(out, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &r[1]));
    for (int i = 0; i < 3; i++) {
        out[0] = 10 * i + rank;
        OK(MPI_Startall(2, r));
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        CHECK(in[0] == 10 * i + previous && r[0] != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));

    char *buffer = malloc(1000 + MPI_BSEND_OVERHEAD), *back;
    OK(MPI_Buffer_attach(buffer, 1000 + MPI_BSEND_OVERHEAD));
    OK(MPI_Bsend(out, 3, MPI_INT, next, 5, MPI_COMM_WORLD));
    OK(MPI_Recv(in, 3, MPI_INT, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&back, &n));
    CHECK(back == buffer && n == 1000 + MPI_BSEND_OVERHEAD);
    free(buffer);

    OK(MPI_Irecv(in, 1, MPI_INT, previous, 99, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Test(&r[0], &flag, &st));
    CHECK(!flag);
    OK(MPI_Cancel(&r[0]));
    OK(MPI_Wait(&r[0], &st));
    OK(MPI_Test_cancelled(&st, &flag));
    CHECK(flag);
    OK(MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &st));
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
}

static void product(void *in, void *inout, int *n, MPI_Datatype *type)
{
    long *a = in, *b = inout;
    (void)type;
    for (; *n > 0; --*n, a += 4, b += 4) { /* 2 x 2 matrices, in order */
        long r[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(b, r, sizeof r);
    }
}

static void collectives(void)
{
    int *all = malloc(size * sizeof(int)), *other = malloc(size * sizeof(int)), *counts = malloc(size * sizeof(int)), *displs = malloc(size * sizeof(int));
    int x = rank, sum = size * (size - 1) / 2;

    for (int i = 0; i < size; i++)
        counts[i] = 1, displs[i] = size - 1 - i, all[i] = -1;
    OK(MPI_Bcast(&x, 1, MPI_INT, size - 1, MPI_COMM_WORLD));
    CHECK(x == size - 1);
    OK(MPI_Gatherv(&rank, 1, MPI_INT, all, counts, displs, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(rank != 0 || all[size - 1] == 0);
    OK(MPI_Scatter(all, 1, MPI_INT, &x, 1, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(x == size - 1 - rank);
    all[rank] = rank;
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) {
        CHECK(all[i] == i);
        all[i] = 100 * rank + i;
    }
    OK(MPI_Alltoall(all, 1, MPI_INT, other, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        CHECK(other[i] == 100 * i + rank);
    OK(MPI_Allreduce(&rank, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(x == sum);
    double d[2] = {rank, 1}, most[2];
    OK(MPI_Reduce(d, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    CHECK(rank != 0 || most[0] == size - 1);
    struct {
        double value;
        int index;
    } place = {-(double)rank, rank}, least;
    OK(MPI_Allreduce(&place, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
    CHECK(least.index == size - 1 && least.value == -(double)(size - 1));
    long double ld = 0.5L, lsum;
    OK(MPI_Allreduce(&ld, &lsum, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(lsum == 0.5L * size);
    OK(MPI_Scan(&rank, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(x == rank * (rank + 1) / 2);
    OK(MPI_Reduce_scatter(all, &x, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(x == 100 * sum + size * rank);

    MPI_Op matrices;
    MPI_Datatype matrix;
    long mine[4] = {1, rank + 1, 0, 1}, result[4];
    OK(MPI_Type_contiguous(4, MPI_LONG, &matrix));
    OK(MPI_Type_commit(&matrix));
    OK(MPI_Op_create(product, 0, &matrices));
    OK(MPI_Allreduce(mine, result, 1, matrix, matrices, MPI_COMM_WORLD));
    CHECK(result[0] == 1 && result[1] == sum + size && result[3] == 1);
    OK(MPI_Op_free(&matrices));
    OK(MPI_Type_free(&matrix));
    CHECK(matrix == MPI_DATATYPE_NULL && matrices == MPI_OP_NULL);

    MPI_Request r[2];
    OK(MPI_Iallreduce(&rank, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &r[1]));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    CHECK(x == sum);
    free(all), free(other), free(counts), free(displs);
}

static void datatypes(void)
{
    double matrix[4][6], column[4];
    MPI_Datatype t;
    MPI_Aint lb, extent;
    int n, next = (rank + 1) % size, previous = (rank + size - 1) % size, position = 0;
    char packed[100];

    for (int i = 0; i < 24; i++)
        matrix[i / 6][i % 6] = i;
    OK(MPI_Type_vector(4, 1, 6, MPI_DOUBLE, &t));
    OK(MPI_Type_commit(&t));
    OK(MPI_Type_get_extent(t, &lb, &extent));
    OK(MPI_Type_size(t, &n));
    CHECK(n == 32 && lb == 0 && extent == 19 * 8);
    OK(MPI_Sendrecv(&matrix[0][2], 1, t, next, 0, column, 4, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; i++)
        CHECK(column[i] == 6 * i + 2);
    OK(MPI_Pack(&matrix[0][1], 1, t, packed, sizeof packed, &position, MPI_COMM_WORLD));
    CHECK(position == 32);
    position = 0;
    OK(MPI_Unpack(packed, sizeof packed, &position, column, 4, MPI_DOUBLE, MPI_COMM_WORLD));
    CHECK(column[3] == 19);
    int integers, addresses, types, combiner;
    OK(MPI_Type_get_envelope(t, &integers, &addresses, &types, &combiner));
    CHECK(integers == 3 && addresses == 0 && types == 1 && combiner == MPI_COMBINER_VECTOR);
    OK(MPI_Type_free(&t));
}

static int copied, deleted;

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *to, int *keep)
{
    (void)comm, (void)key, (void)extra;
    *(void **)to = value;
    copied++, *keep = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
    int class;
    MPI_Error_class(*code, &class);
    handled = class == MPI_ERR_RANK && *comm != MPI_COMM_NULL;
}

static void communicators(void)
{
    MPI_Comm twin, half, cart;
    MPI_Group world, odd;
    int n, flag, key, value = 7, *found, dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], source, dest, length, class;
    char text[MPI_MAX_ERROR_STRING];

    OK(MPI_Comm_create_keyval(copy, delete, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPI_Comm_get_attr(twin, key, &found, &flag));
    CHECK(flag && found == &value && copied == 1);
    OK(MPI_Comm_compare(MPI_COMM_WORLD, twin, &n));
    CHECK(n == MPI_CONGRUENT);
    OK(MPI_Comm_free(&twin));
    CHECK(deleted == 1 && twin == MPI_COMM_NULL);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag));
    CHECK(flag && *found >= 32767);

    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
    OK(MPI_Comm_size(half, &n));
    CHECK(n == (size + 1 - rank % 2) / 2);
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, (int[]){size - 1}, &odd));
    OK(MPI_Group_rank(odd, &n));
    CHECK(n == (rank == size - 1 ? 0 : MPI_UNDEFINED));
    OK(MPI_Group_free(&odd));
    OK(MPI_Group_free(&world));

    OK(MPI_Dims_create(size, 2, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart));
    OK(MPI_Cart_coords(cart, rank, 2, coords));
    OK(MPI_Cart_shift(cart, 1, 1, &source, &dest));
    CHECK(coords[1] + 1 < dims[1] || dest == MPI_PROC_NULL);
    OK(MPI_Comm_free(&cart));

    MPI_Errhandler h;
    OK(MPI_Comm_create_errhandler(handler, &h));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, h));
    n = MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    OK(MPI_Error_class(n, &class));
    OK(MPI_Error_string(n, text, &length));
    CHECK(handled && class == MPI_ERR_RANK && strstr(text, "there is no rank") && (int)strlen(text) == length);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&h));
    n = MPI_Win_fence(0, MPI_WIN_NULL); /* one-sided communication is not supported */
    OK(MPI_Error_string(n, text, &length));
    CHECK(strstr(text, "MPI_Win_fence is not supported"));
}

int main(int argc, char **argv)
{
    int provided, flag;
    MPI_Info info;
    char value[10];

    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double start = MPI_Wtime();
    point_to_point();
    collectives();
    datatypes();
    communicators();
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "some"));
    OK(MPI_Info_get(info, "key", 9, value, &flag));
    CHECK(flag && !strcmp(value, "some"));
    OK(MPI_Info_free(&info));
    CHECK(MPI_Wtime() >= start && MPI_Wtick() > 0);
    if (argc > 1 && !strcmp(argv[1], "fail"))
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL), MPI_Send(&rank, 1, MPI_INT, rank == 1 ? -5 : MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    if (!wrong)
        printf("rank %d of %d: ok\n", rank, size);
    return wrong > 0;
}
