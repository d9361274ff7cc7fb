/* A program whose arguments are its steps: "send 1 7 4" sends 4 words to rank 1 with tag 7. When the steps are done it
 * calls MPI_Finalize. steps_test.go is the same program in Go. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int in[100000], out[100000];

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD, twin;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        char call[16] = "";
        int a = 0, b = 0, n = 0;
        sscanf(argv[i], "%15s %d %d %d", call, &a, &b, &n);
#define IS(name) (!strcmp(call, name))
        if (IS("send")) {
            MPI_Send(out, n, MPI_INT, a, b, comm);
        } else if (IS("floats")) {
            MPI_Send(out, n, MPI_FLOAT, a, b, comm);
        } else if (IS("ssend")) {
            MPI_Ssend(out, n, MPI_INT, a, b, comm);
        } else if (IS("isend")) {
            MPI_Isend(out, n, MPI_INT, a, b, comm, &request);
        } else if (IS("recv")) {
            MPI_Recv(in, n, MPI_INT, a, b, comm, MPI_STATUS_IGNORE);
        } else if (IS("irecv")) {
            MPI_Irecv(in, n, MPI_INT, a, b, comm, &request);
        } else if (IS("try")) { /* a receive whose error is ignored */
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            MPI_Recv(in, n, MPI_INT, a, b, comm, MPI_STATUS_IGNORE);
        } else if (IS("allreduce")) {
            MPI_Allreduce(out, in, a, MPI_INT, MPI_SUM, comm);
        } else if (IS("scan")) {
            MPI_Scan(out, in, a, MPI_INT, MPI_SUM, comm);
        } else if (IS("reduce")) {
            MPI_Reduce(out, in, b, MPI_INT, MPI_SUM, a, comm);
        } else if (IS("bcast")) {
            MPI_Bcast(in, b, MPI_INT, a, comm);
        } else if (IS("barrier")) {
            MPI_Barrier(comm);
        } else if (IS("dup")) {
            MPI_Comm_dup(MPI_COMM_WORLD, &twin);
            comm = twin;
        } else if (IS("world")) {
            comm = MPI_COMM_WORLD;
        } else if (IS("ready")) {
            printf("ready %s %d\n", getenv("ZRLMPI_TEST_HOST"), (int)getpid());
            fflush(stdout);
            while (access(getenv("ZRLMPI_TEST_GO"), F_OK))
                usleep(10000);
        } else if (IS("exit")) {
            _exit(0);
        } else if (IS("compute")) {
            for (;;)
                pause();
        } else {
            fprintf(stderr, "no step %s\n", argv[i]);
            return 2;
        }
    }
    return MPI_Finalize();
}
