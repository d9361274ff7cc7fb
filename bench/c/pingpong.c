/*
 * pingpong: the time that a message of a size takes. The same as pingpong.go,
 * for any MPI. Arguments: bytes:iterations ... Output: see parse.go.
 *
 * Every message bears a number in its first and last word; all of its words are
 * compared in the first and the last round of a size.
 */
#include "bench.h"

static int rank;
static long long verified;

static int pattern(int word, int sender) { return (int)((unsigned)word * 2654435761u + (unsigned)sender); }

/* stamp is the number of a message: one's complement marks those of rank 1. */
static int stamp(int round, int sender) { return sender == 0 ? round : ~round; }

static void fill(int *words, int count, int sender) {
	for (int i = 0; i < count; i++)
		words[i] = pattern(i, sender);
}

static void expect(struct bench_step s, int round, int word, int got, int want) {
	if (got != want)
		bench_fail("%d bytes, round %d: word %d is %d instead of %d", s.n, round, word, got, want);
}

static void verify(struct bench_step s, const int *words, int count, int round) {
	int number = stamp(round, 1 - rank);
	expect(s, round, 0, words[0], number);
	expect(s, round, count - 1, words[count - 1], number);
	if (round == -BENCH_WARMUP || round == s.iterations - 1)
		for (int i = 1; i < count - 1; i++)
			expect(s, round, i, words[i], pattern(i, 1 - rank));
	verified++;
}

static void step(struct bench_step s) {
	int count = s.n / (int)sizeof(int);
	int *out, *in;
	double *half;

	if (count < 1 || s.n % sizeof(int) != 0)
		bench_fail("%d bytes are not a number of words", s.n);
	out = bench_alloc(count, sizeof *out);
	in = bench_alloc(count, sizeof *in);
	half = bench_alloc(s.iterations, sizeof *half);
	fill(out, count, rank);
	for (int i = -BENCH_WARMUP; i < s.iterations; i++) {
		out[0] = out[count - 1] = stamp(i, rank);
		if (rank == 0) {
			double start = MPI_Wtime();
			MPI_Send(out, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(in, count, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (i >= 0)
				half[i] = (MPI_Wtime() - start) / 2;
		} else {
			MPI_Recv(in, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(out, count, MPI_INT, 0, 0, MPI_COMM_WORLD);
		}
		verify(s, in, count, i);
	}
	if (rank == 0)
		bench_point(s, half, 0);
	free(out);
	free(in);
	free(half);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	rank = bench_rank();
	for (int i = 1; i < argc; i++)
		step(bench_step(argv[i]));
	if (rank == 0) {
		long long far;
		MPI_Recv(&far, 1, MPI_LONG_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("verified %lld\n", verified + far);
	} else {
		MPI_Send(&verified, 1, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
