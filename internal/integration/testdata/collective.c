/*
 * The calls of a collective between this host, rank 0 and the root, and a deployed node, rank 1, which makes sends and
 * receives. The arguments are the collective, the number of words and how often it is called. Word i of message k of the
 * node is 100000 k + i, of the host 7000003 (k + 1) + i. A line says how each call has ended.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int host(int k, int i) { return 7000003 * (k + 1) + i; }
static int node(int k, int i) { return 100000 * k + i; }

int main(int argc, char **argv)
{
	const char *what = argv[1];
	const int n = atoi(argv[2]), times = atoi(argv[3]);
	int *a = calloc(2 * n, sizeof *a), *b = calloc(2 * n, sizeof *b);
	int i, k, code, right, len;
	char text[MPI_MAX_ERROR_STRING];

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (k = 0; k < times; k++) {
		for (i = 0; i < n; i++) {
			a[i] = host(k, i);
			a[n + i] = host(k, n + i);
			b[i] = b[n + i] = 0;
		}
		right = 1;
		if (strcmp(what, "bcast") == 0) {
			code = MPI_Bcast(a, n, MPI_INT, 0, MPI_COMM_WORLD);
		} else if (strcmp(what, "scatter") == 0) {
			code = MPI_Scatter(a, n, MPI_INT, b, n, MPI_INT, 0, MPI_COMM_WORLD);
			for (i = 0; i < n; i++)
				right = right && b[i] == host(k, i);
		} else if (strcmp(what, "gather") == 0) {
			code = MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, 0, MPI_COMM_WORLD);
			for (i = 0; i < n; i++)
				right = right && b[i] == host(k, i) && b[n + i] == node(k, i);
		} else if (strcmp(what, "reduce") == 0) {
			code = MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
			for (i = 0; i < n; i++)
				right = right && b[i] == host(k, i) + node(k, i);
		} else if (strcmp(what, "allreduce") == 0) {
			code = MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			for (i = 0; i < n; i++)
				right = right && b[i] == host(k, i) + node(2 * k, i);
		} else {
			code = MPI_Barrier(MPI_COMM_WORLD);
		}
		if (code == MPI_SUCCESS) {
			printf("call %d: %s\n", k, right ? "right" : "WRONG");
		} else {
			MPI_Error_string(code, text, &len);
			printf("call %d: error: %s\n", k, text);
		}
		fflush(stdout);
	}
	printf("end\n");
	fflush(stdout);
	getchar(); /* the last ACK may have to be retransmitted */
	MPI_Finalize();
	return 0;
}
