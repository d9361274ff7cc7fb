/* Shared parts of all programs: steps, times, and the resource usage of a process. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BENCH_WARMUP = 20, BENCH_WARMUP_WINDOWS = 2 }; /* as in step.go */

/* bench_fail prints an error and exits. */
static void bench_fail(const char *format, ...);

static void bench_complain(const char *format, va_list args) {
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	fflush(stderr);
}

static void *bench_alloc(size_t n, size_t size) {
	void *p = calloc(n + 1, size); /* never a size of 0 */
	if (p == NULL)
		bench_fail("no memory for %zu times %zu bytes", n, size);
	return p;
}

struct bench_step {
	int n, iterations;
};

static struct bench_step bench_step(const char *text) {
	struct bench_step s;
	char end;
	if (sscanf(text, "%d:%d%c", &s.n, &s.iterations, &end) != 2 || s.n < 0 || s.iterations < 1)
		bench_fail("%s: an argument is N:ITERATIONS", text);
	return s;
}

/* bench_now returns a time in seconds. */
static double bench_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* bench_cpu returns the processor time used by the process in ns. */
static long long bench_cpu(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

/* bench_memory returns the peak memory of the process in KiB, or 0 if unknown. */
static long long bench_memory(void) {
	char line[256];
	long long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	if (f == NULL)
		return 0;
	while (fgets(line, sizeof line, f) != NULL && sscanf(line, "VmHWM: %lld kB", &kib) != 1)
		;
	fclose(f);
	return kib;
}

/* bench_point is the result of a step: times of a message in seconds, and shares of a processor.
 * Figures that a workload does not measure are 0. */
struct bench_point {
	double p50, p99, p999, least, unload, resting, waiting;
};

static int bench_compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void bench_times(struct bench_point *p, double *times, int n) {
	qsort(times, n, sizeof *times, bench_compare);
	p->p50 = times[n / 2];
	p->p99 = times[(long long)n * 99 / 100];
	p->p999 = times[(long long)n * 999 / 1000];
	p->least = times[0];
}

/* bench_print prints a step's point in the format that parse.go reads. */
static void bench_print(int n, const struct bench_point *p, long long cpu, long long messages) {
	printf("point %d p50 %.4f p99 %.4f p999 %.4f least %.4f unload %.4f resting %.4f waiting %.4f cpu %.4f\n", n, p->p50 * 1e6,
		p->p99 * 1e6, p->p999 * 1e6, p->least * 1e6, p->unload * 1e6, p->resting * 100, p->waiting * 100,
		messages > 0 ? cpu / 1e3 / messages : 0);
}

static void bench_print_sums(long long memory, long long verified) {
	printf("memory %lld\nverified %lld\n", memory, verified);
	fflush(stdout);
}

/* The first and the last word of every message contain its number. */

static int bench_pattern(int word, int sender) { return (int)((unsigned)word * 2654435761u + (unsigned)sender); }

/* bench_number returns the number of a message. The rank that answers uses the one's complement. */
static int bench_number(int round, int sender) { return sender == 0 ? round : ~round; }

static void bench_fill(int *words, int count, int sender) {
	for (int i = 0; i < count; i++)
		words[i] = bench_pattern(i, sender);
}

static void bench_stamp(int *words, int count, int number) { words[0] = words[count - 1] = number; }

static void bench_expect(int n, int round, int word, int got, int want) {
	if (got != want)
		bench_fail("step %d, round %d: word %d is %d instead of %d", n, round, word, got, want);
}

/* bench_verify verifies either all words of a message, or the first and the last one. */
static void bench_verify(int n, int round, const int *words, int count, int number, int sender, int all) {
	bench_expect(n, round, 0, words[0], number);
	bench_expect(n, round, count - 1, words[count - 1], number);
	for (int i = 1; all && i < count - 1; i++)
		bench_expect(n, round, i, words[i], bench_pattern(i, sender));
}

/* bench_words returns the number of words in a message of n bytes. */
static int bench_words(int n) {
	if (n < (int)sizeof(int) || n % sizeof(int) != 0)
		bench_fail("%d bytes are not a number of words", n);
	return n / (int)sizeof(int);
}
