/* Shared parts of the raw programs, which measure the limits of the machine with two processes
 * and without MPI. Process 0 measures, process 1 answers. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stats.h"

enum { RAW_MAX_STEPS = 64 };

static int raw_rank;

/* raw_far is the report that process 1 makes to process 0 at the end. */
static struct {
	long long cpu[RAW_MAX_STEPS], verified[RAW_MAX_STEPS], memory;
} *raw_far;

static long long raw_verified;

static void bench_fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	bench_complain(format, args);
	va_end(args);
	if (raw_rank == 1)
		kill(getppid(), SIGTERM); /* the parent waits for an answer */
	exit(1);
}

static void raw_check(const char *what, int failed) {
	if (failed)
		bench_fail("%s: %s", what, strerror(errno));
}

/* raw_shared allocates memory shared by both processes. It must be called before the fork. */
static void *raw_shared(size_t size) {
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	raw_check("mmap", p == MAP_FAILED);
	return p;
}

/* raw_spin is called between two checks of a value that the other process changes. It sometimes
 * yields the processor, in case the other process has to run on it. */
static void raw_spin(unsigned *looks) {
	if ((++*looks & 0xfff) == 0)
		sched_yield();
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

/* raw_pin binds each process to a separate processor, if there are two. Forked processes sometimes
 * share one, which is not a limit of the machine. */
static void raw_pin(void) {
	cpu_set_t allowed, mine;
	int seen = 0;

	if (sched_getaffinity(0, sizeof allowed, &allowed) < 0 || CPU_COUNT(&allowed) < 2)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || seen++ != raw_rank)
			continue;
		CPU_ZERO(&mine);
		CPU_SET(cpu, &mine);
		raw_check("sched_setaffinity", sched_setaffinity(0, sizeof mine, &mine) < 0);
		return;
	}
}

/* raw_run runs the steps in two processes. */
static int raw_run(int argc, char **argv, void (*step)(struct bench_step, struct bench_point *)) {
	static struct bench_step s[RAW_MAX_STEPS];
	static struct bench_point p[RAW_MAX_STEPS];
	static long long cpu[RAW_MAX_STEPS], verified[RAW_MAX_STEPS];
	long long memory, sum = 0;
	pid_t parent = getpid(), far;
	int status;

	if (argc > RAW_MAX_STEPS)
		bench_fail("%d steps are more than %d", argc, RAW_MAX_STEPS);
	for (int i = 0; i < argc; i++)
		s[i] = bench_step(argv[i]);
	raw_far = raw_shared(sizeof *raw_far);
	raw_check("fork", (far = fork()) < 0);
	if (far == 0) {
		raw_rank = 1;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			return 1; /* the parent has already exited */
	}
	raw_pin();
	for (int i = 0; i < argc; i++) {
		long long used = bench_cpu(), before = raw_verified;
		step(s[i], &p[i]);
		cpu[i] = bench_cpu() - used;
		verified[i] = raw_verified - before;
	}
	memory = bench_memory();
	if (raw_rank == 1) {
		memcpy(raw_far->cpu, cpu, sizeof cpu);
		memcpy(raw_far->verified, verified, sizeof verified);
		raw_far->memory = memory;
		return 0;
	}
	raw_check("waitpid", waitpid(far, &status, 0) < 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		bench_fail("the other process failed");
	for (int i = 0; i < argc; i++) {
		verified[i] += raw_far->verified[i];
		bench_print(s[i].n, &p[i], cpu[i] + raw_far->cpu[i], verified[i]);
		sum += verified[i];
	}
	bench_print_sums(memory > raw_far->memory ? memory : raw_far->memory, sum);
	return 0;
}
