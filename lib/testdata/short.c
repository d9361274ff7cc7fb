/* Short calls of two ranks, many of which finish in C, between calls that the library has to execute. With "wait", rank 0 then prints its process
   ID and waits for the end of its input, while rank 1 waits for a message from it. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 300 };

static int rank, peer;

#define CHECK(is, ...)                                          \
    do                                                          \
        if (!(is)) {                                            \
            printf("rank %d, line %d: ", rank, __LINE__);       \
            printf(__VA_ARGS__);                                \
            printf("\n");                                       \
            fflush(stdout);                                     \
            abort();                                            \
        }                                                       \
    while (0)

/* Exchanges messages of n ints, which begin with a number, in a communicator. */
static void exchange(MPI_Comm comm, int tag, int n, int rounds)
{
    int out[4096] = {0}, in[4096], count;
    MPI_Status status;

    for (int i = 0; i < rounds; i++) {
        int want = i % 3 ? tag : MPI_ANY_TAG;
        out[0] = 7 * i + rank;
        if (rank == 0)
            MPI_Send(out, n, MPI_INT, peer, tag, comm);
        status.MPI_ERROR = 77;
        MPI_Recv(in, n + 5, MPI_INT, i % 50 == 49 ? MPI_ANY_SOURCE : peer, want, comm, i % 2 ? &status : MPI_STATUS_IGNORE);
        CHECK(n == 0 || in[0] == 7 * i + peer, "message %d is %d", i, in[0]);
        if (i % 2) {
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK(count == n && status.MPI_SOURCE == peer && status.MPI_TAG == tag && status.MPI_ERROR == 77,
                  "%d ints of rank %d with tag %d, error %d", count, status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR);
        }
        if (rank == 1)
            MPI_Send(out, n, MPI_INT, peer, tag, comm);
    }
}

static void collectives(MPI_Comm comm)
{
    for (int i = 0; i < ROUNDS; i++) {
        int root = i / 20 % 2, data[2] = {0}, mine = i + 10 * rank, sum = -1, all[2] = {0}, to[2] = {i, i + 1 + rank};
        double big = rank, biggest = -1;
        if (rank == root)
            data[0] = i, data[1] = 3 * i;
        MPI_Bcast(data, 2, MPI_INT, root, comm);
        CHECK(data[0] == i && data[1] == 3 * i, "%d %d", data[0], data[1]);
        MPI_Barrier(comm);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == 2 * i + 10, "sum %d", sum);
        MPI_Allreduce(&big, &biggest, 1, MPI_DOUBLE, MPI_MAX, comm);
        CHECK(biggest == 1, "max %g", biggest);
        sum = -1;
        MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_MIN, root, comm);
        CHECK(sum == (rank == root ? i : -1), "min %d", sum);
        MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
        CHECK(all[0] == i && all[1] == i + 10, "%d %d", all[0], all[1]);
        MPI_Alltoall(to, 1, MPI_INT, all, 1, MPI_INT, comm);
        CHECK(all[0] == (rank ? i + 1 : i) && all[1] == (rank ? i + 2 : i), "%d %d", all[0], all[1]);
        if (i % 40 == 39)
            MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_SUM, comm);
    }
}

/* Messages that arrive before or after the one that is received, and messages that are too long. */
static void odd(void)
{
    int in[4] = {0}, a = 1, b = 2, class;
    MPI_Status status;
    MPI_Request request;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 50; i++) {
        exchange(MPI_COMM_WORLD, 5, 1, 10);
        if (rank == 0) {
            MPI_Send(&a, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
            MPI_Send(&b, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
            MPI_Send(in, 3, MPI_INT, 1, 3, MPI_COMM_WORLD);
            MPI_Send(&a, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
            MPI_Error_class(MPI_Send(&a, 1, MPI_INT, 2, 3, MPI_COMM_WORLD), &class);
            CHECK(class == MPI_ERR_RANK, "class %d", class);
            MPI_Error_class(MPI_Send(&a, -1, MPI_INT, 1, 3, MPI_COMM_WORLD), &class);
            CHECK(class == MPI_ERR_COUNT, "class %d", class);
            MPI_Error_class(MPI_Send(&a, 1, MPI_INT, 1, -5, MPI_COMM_WORLD), &class);
            CHECK(class == MPI_ERR_TAG, "class %d", class);
            MPI_Error_class(MPI_Send(&a, 1, MPI_DATATYPE_NULL, 1, 5, MPI_COMM_WORLD), &class);
            CHECK(class == MPI_ERR_TYPE, "class %d", class);
            MPI_Error_class(MPI_Send(&a, 1, MPI_INT, 1, 5, MPI_COMM_NULL), &class);
            CHECK(class == MPI_ERR_COMM, "class %d", class);
        } else {
            MPI_Recv(in, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(in[0] == 2, "%d", in[0]);
            MPI_Recv(in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(in[0] == 1, "%d", in[0]);
            MPI_Error_class(MPI_Recv(in, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
            CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
            MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
            CHECK(status.MPI_SOURCE == MPI_PROC_NULL, "source %d", status.MPI_SOURCE);
        }
        /* a receive that is posted first gets the first message */
        MPI_Irecv(&a, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, &request);
        for (int k = 0; k < 2; k++) {
            int out = 100 + k;
            MPI_Send(&out, 1, MPI_INT, peer, 9, MPI_COMM_WORLD);
        }
        MPI_Recv(&b, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(a == 100 && b == 101, "%d %d", a, b);
        a = 1, b = 2;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void *thread(void *comm)
{
    exchange(*(MPI_Comm *)comm, 1, 1, ROUNDS);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[2];
    MPI_Comm comms[2];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    if (argc > 1) {
        exchange(MPI_COMM_WORLD, 3, 1, 1000);
        for (int i = 0; i < 500; i++)
            MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%d\n", (int)getpid());
            fflush(stdout);
            while (getchar() != EOF)
                ;
            MPI_Send(&rank, 1, MPI_INT, 1, 42, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&rank, 1, MPI_INT, 0, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Finalize();
        return 0;
    }
    exchange(MPI_COMM_WORLD, 3, 0, ROUNDS), exchange(MPI_COMM_WORLD, 3, 1, ROUNDS);
    exchange(MPI_COMM_WORLD, 0, 256, ROUNDS), exchange(MPI_COMM_WORLD, 0, 257, ROUNDS), exchange(MPI_COMM_WORLD, 0, 3000, 50);
    collectives(MPI_COMM_WORLD);
    odd();
    for (int i = 0; i < 20; i++) { /* handles are reused */
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
        exchange(comms[0], 3, 1, 50);
        for (int k = 0; k < 30; k++) {
            int a = 1 + rank, b = 0;
            MPI_Bcast(&a, 1, MPI_INT, k % 2, comms[1]); /* rank 0 of it is rank 1 of the world */
            CHECK(a == 2 - k % 2, "%d", a);
            MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, comms[0]);
            CHECK(b == 2 * a, "%d", b);
        }
        MPI_Comm_free(&comms[1]);
        MPI_Comm_free(&comms[0]);
    }
    for (int k = 0; k < 2; k++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
    for (int k = 0; k < 2; k++)
        pthread_create(&threads[k], NULL, thread, &comms[k]);
    for (int k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of 2: ok\n", rank);
    MPI_Finalize();
    return 0;
}
