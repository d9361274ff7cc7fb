/* Families that calls.c does not cover: non-blocking, persistent and neighbourhood collectives, intercommunicators, graphs, attributes, partitioned
   messages, large counts and sessions. The file is valid C and C++. Each rank prints "ok" or the failed checks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 8 };

static int rank, size, next, previous, wrong;

#define CHECK(x)                                                                      \
    do {                                                                              \
        if (!(x)) {                                                                   \
            printf("rank %d, line %d: not so: %s\n", rank, __LINE__, #x);             \
            wrong++;                                                                  \
        }                                                                             \
    } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

static void requests(void)
{
    int one = rank + 1, sum = 0, all[MOST], got[MOST], sums = size * (size + 1) / 2;
    MPI_Request r[3];

    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Iallgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &r[1]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &r[2]));
    OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
    CHECK(sum == sums);
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i + 1);

    OK(MPI_Alltoall_init(all, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < size; i++)
            all[i] = round + 100 * rank + i;
        OK(MPI_Start(&r[0]));
        OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
        for (int i = 0; i < size; i++)
            CHECK(got[i] == round + 100 * i + rank);
    }
    OK(MPI_Request_free(&r[0]));

    int parts[4], arrived[4], flag;
    OK(MPI_Psend_init(parts, 4, 1, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(arrived, 4, 1, MPI_INT, previous, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    OK(MPI_Startall(2, r));
    for (int i = 0; i < 4; i++) {
        parts[i] = 10 * rank + i;
        OK(MPI_Pready(i, r[0]));
    }
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    OK(MPI_Parrived(r[1], 3, &flag));
    CHECK(flag && arrived[0] == 10 * previous && arrived[3] == 10 * previous + 3);
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

static void large_counts(void)
{
    double out[2] = {1.0, 2.0}, in[2] = {0, 0};
    MPI_Count count, size_of;
    MPI_Datatype pair;
    MPI_Status st;

    OK(MPI_Type_contiguous_c(2, MPI_DOUBLE, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_size_c(pair, &size_of));
    CHECK(size_of == 16);
    OK(MPI_Sendrecv_c(out, 1, pair, next, 2, in, 2, MPI_DOUBLE, previous, 2, MPI_COMM_WORLD, &st));
    OK(MPI_Get_count_c(&st, pair, &count));
    CHECK(count == 1 && in[1] == 2.0);
    OK(MPI_Allreduce_c(out, in, 2, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD));
    CHECK(in[0] == 1.0 && in[1] == (double)(1 << size));
    OK(MPI_Type_free(&pair));
}

static void neighbours(void)
{
    int dims[1], periods[1] = {1}, two[2], mine = rank, source, dest, indegree, outdegree, weighted;
    MPI_Comm ring, graph;

    dims[0] = size;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    OK(MPI_Cart_shift(ring, 0, 1, &source, &dest));
    CHECK(source == previous && dest == next);
    OK(MPI_Neighbor_allgather(&mine, 1, MPI_INT, two, 1, MPI_INT, ring));
    CHECK(two[0] == previous && two[1] == next);
    OK(MPI_Comm_free(&ring));

    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
    OK(MPI_Dist_graph_neighbors_count(graph, &indegree, &outdegree, &weighted));
    CHECK(indegree == 1 && outdegree == 1 && !weighted);
    two[0] = -1;
    MPI_Request r;
    OK(MPI_Ineighbor_alltoall(&mine, 1, MPI_INT, two, 1, MPI_INT, graph, &r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(two[0] == previous);
    OK(MPI_Comm_free(&graph));
}

static void between_groups(void)
{
    int half = rank % 2, remote, sum, n, root;
    MPI_Comm mine, inter, all;

    if (size < 2)
        return;
    OK(MPI_Comm_split(MPI_COMM_WORLD, half, rank, &mine));
    OK(MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - half, 7, &inter));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == (half ? (size + 1) / 2 : size / 2));
    OK(MPI_Allreduce(&half, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == (half ? 0 : remote));
    root = half ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    n = rank == 0 ? 42 : 0;
    OK(MPI_Bcast(&n, 1, MPI_INT, root, inter));
    CHECK(n == (half || rank == 0 ? 42 : 0));
    OK(MPI_Intercomm_merge(inter, half, &all));
    OK(MPI_Comm_size(all, &n));
    CHECK(n == size);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&mine));
}

static int copied, deleted;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    copied++;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    int key, value = 5, flag, *upper;
    void *found;
    MPI_Comm other;

    OK(MPI_Comm_create_keyval(copy, forget, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_get_attr(other, key, &found, &flag));
    CHECK(flag && found == &value && copied == 1);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CHECK(deleted == 2);
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    CHECK(flag && *upper >= 32767);
}

static void session(void)
{
    int n, sum;
    MPI_Session s;
    MPI_Group group;
    MPI_Comm comm;

    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
    CHECK(n >= 2);
    OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "families", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_MAX, comm));
    CHECK(n == size && sum == size - 1);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&s));
}

/* Conversions of handles and statuses to and from Fortran. */
static void fortran(void)
{
    MPI_Status status, again;
    MPI_Fint f[MPI_F_STATUS_SIZE];
    MPI_F08_status f08;
    MPI_Request none = MPI_REQUEST_NULL;

    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
    CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
    CHECK(MPI_Group_f2c(MPI_Group_c2f(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
    CHECK(MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_NULL)) == MPI_INFO_NULL);
    CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
    CHECK(MPI_Request_f2c(MPI_Request_c2f(none)) == none);
    CHECK(MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NULL)) == MPI_MESSAGE_NULL);
    CHECK(MPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
    CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
    CHECK(PMPI_Comm_f2c(PMPI_Comm_c2f(MPI_COMM_SELF)) == MPI_COMM_SELF);

    OK(MPI_Sendrecv(&rank, 1, MPI_INT, next, 5, &wrong, 0, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int from = -1;
    OK(MPI_Recv(&from, 1, MPI_INT, previous, 5, MPI_COMM_WORLD, &status));
    OK(MPI_Status_c2f(&status, f));
    CHECK(f[MPI_F_SOURCE] == previous && f[MPI_F_TAG] == 5);
    OK(MPI_Status_f2f08(f, &f08));
    CHECK(f08.MPI_SOURCE == previous && f08.MPI_TAG == 5);
    memset(f, 0, sizeof f);
    OK(MPI_Status_f082f(&f08, f));
    OK(MPI_Status_f2c(f, &again));
    OK(MPI_Status_c2f08(&again, &f08));
    memset(&again, 0, sizeof again);
    OK(MPI_Status_f082c(&f08, &again));
    int n = -1;
    OK(MPI_Get_count(&again, MPI_INT, &n));
    CHECK(again.MPI_SOURCE == previous && n == 1);
    CHECK(MPI_Status_c2f(MPI_STATUS_IGNORE, f) != MPI_SUCCESS);
    CHECK(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &again) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, previous = (rank + size - 1) % size;
    requests();
    large_counts();
    neighbours();
    between_groups();
    attributes();
    session();
    fortran();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    if (!wrong)
        printf("rank %d of %d: ok\n", rank, size);
    return wrong > 0;
}
