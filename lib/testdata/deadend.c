/* Calls that wait for rank 1, an FPGA in a dead end. The first argument selects the call; with "fatal" as the second one, errors are fatal. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { words = 1000 };

static int out[words], in[words];

/* say prints the class and the text of an error. */
static void say(const char *what, int code)
{
	int class, len;
	char text[MPI_MAX_ERROR_STRING];

	if (code == MPI_SUCCESS) {
		printf("%s: success\n", what);
	} else {
		MPI_Error_class(code, &class);
		MPI_Error_string(code, text, &len);
		printf("%s: %s: %s\n", what,
			class == MPI_ERR_OTHER ? "other" : class == MPI_ERR_IN_STATUS ? "in status" : class == MPI_ERR_PENDING ? "pending" : "?", text);
	}
	fflush(stdout);
}

static void say_all(int n, int code, MPI_Status *st)
{
	int i;

	say("all", code);
	for (i = 0; code != MPI_SUCCESS && i < n; i++)
		say("status", st[i].MPI_ERROR);
}

int main(int argc, char **argv)
{
	const char *how = argv[1];
	MPI_Request r[3];
	MPI_Status st[3];
	int i;

	MPI_Init(&argc, &argv);
	if (strcmp(argv[2], "fatal") != 0)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (strcmp(how, "sendrecv") == 0) {
		say("sendrecv", MPI_Sendrecv(out, words, MPI_INT, 1, 0, in, words, MPI_INT, 1, 0, MPI_COMM_WORLD, st));
	} else if (strcmp(how, "other") == 0) { /* receives from the rank after the FPGA */
		say("sendrecv", MPI_Sendrecv(out, words, MPI_INT, 1, 0, in, words, MPI_INT, 2, 0, MPI_COMM_WORLD, st));
	} else if (strcmp(how, "replace") == 0) {
		say("sendrecv", MPI_Sendrecv_replace(out, words, MPI_INT, 1, 0, 1, 0, MPI_COMM_WORLD, st));
	} else if (strcmp(how, "isendrecv") == 0) {
		MPI_Isendrecv(out, words, MPI_INT, 1, 0, in, words, MPI_INT, 2, 0, MPI_COMM_WORLD, r);
		say("wait", MPI_Wait(r, st));
	} else if (strcmp(how, "waitall") == 0) {
		MPI_Irecv(in, words, MPI_INT, 1, 0, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD, &r[1]);
		say_all(2, MPI_Waitall(2, r, st), st);
	} else if (strcmp(how, "behind") == 0) {
		MPI_Irecv(in, words, MPI_INT, 2, 0, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD, &r[1]);
		say_all(2, MPI_Waitall(2, r, st), st);
		MPI_Cancel(&r[0]); /* it is still pending */
		say("cancelled", MPI_Wait(&r[0], st));
	} else if (strcmp(how, "persistent") == 0) {
		MPI_Recv_init(in, words, MPI_INT, 1, 0, MPI_COMM_WORLD, &r[0]);
		MPI_Send_init(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD, &r[1]);
		for (i = 0; i < 2; i++) {
			MPI_Startall(2, r);
			say_all(2, MPI_Waitall(2, r, st), st);
		}
	} else if (strcmp(how, "later") == 0) {
		say("send", MPI_Send(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD));
		say("recv", MPI_Recv(in, words, MPI_INT, 1, 0, MPI_COMM_WORLD, st));
		say("send", MPI_Send(out, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
		say("probe", MPI_Probe(1, 0, MPI_COMM_WORLD, st));
	} else if (strcmp(how, "any") == 0) {
		MPI_Irecv(in, words, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD, &r[1]);
		say_all(2, MPI_Waitall(2, r, st), st);
	} else if (strcmp(how, "collective") == 0) {
		say("bcast", MPI_Bcast(out, words, MPI_INT, 0, MPI_COMM_WORLD));
		say("reduce", MPI_Reduce(out, in, words, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
	} else if (strcmp(how, "reset") == 0) {
		say("send", MPI_Send(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD));
		say("send", MPI_Send(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD));
		if (getchar() == EOF) /* the user resets the FPGA */
			exit(1);
		say("send", MPI_Send(out, words, MPI_INT, 1, 0, MPI_COMM_WORLD));
		say("recv", MPI_Recv(in, words, MPI_INT, 1, 0, MPI_COMM_WORLD, st));
	}
	MPI_Finalize();
	return 0;
}
