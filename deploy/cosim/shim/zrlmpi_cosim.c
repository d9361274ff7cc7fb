#define _POSIX_C_SOURCE 200809L
#include "zrlmpi_cosim.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Types and lengths of frames: docs/cosim.md. */
enum { VERSION = 2, HELLO = 1, START = 2, STEP = 3, RESULT = 4 };
enum { HEAD = 8, RECORD = 16, START_LEN = 24, STEP_LEN = 20, RESULT_LEN = 48 };
enum { STEP_TCP_LEN = 8, RESULT_TCP_LEN = 40 }; /* additional with TCP */
enum { ROLE, NETWORK, NETWORK_TCP }; /* boundaries */
/* The streams of the role. The streams of the network have the same directions: CALL is the metadata of
 * sent datagrams, FEEDBACK of received ones, OUT and IN are their lines. PORTS is no stream: it
 * reports a change of rx_ports. TCP is added for the streams of TCP. */
enum { CALL, OUT, IN, FEEDBACK, KINDS, PORTS = KINDS, TCP = 8, OUTPUTS = OUT + 1 };
/* Violated rules of AXI4-Streams: byte 15 of a record, which is 0 for a transfer. */
enum { WITHDRAWN = 1, CHANGED, UNKNOWN, WAITS };
#define MAGIC 0x534f435aU
#define NEVER UINT64_MAX
#define MAX_RECORDS 4096
#define EDGE_RECORDS 38 /* at most per edge: 6 transfers, and each rule once on each stream */
#define LINES 4096    /* lines of IN held for the role, for each set of streams */
#define FEEDBACKS 64
#define BUDGET_CYCLES 64 /* between two readings of the clock */
#define POLLS 400     /* polls for the next step before the process sleeps */
#define HELD_TRANSFERS 4096 /* transfers of each stream from the role in which ready follows valid */
#define HELD_ENDS 64  /* maximum number of holds of a stream that end without valid */
#define PROMPT 16     /* cycles after ready within which valid may have waited for it */

struct line {
	uint64_t data;
	uint8_t keep, last;
};

/* Signals driven by the role on a stream from it. */
struct offer {
	uint8_t valid, keep, last;
	uint64_t data;
	const struct zrlmpi_unknown *unknown;
};

/* Signals driven by the role, at either boundary. */
struct from {
	struct offer out[OUTPUTS];                            /* CALL, OUT */
	uint8_t ready[KINDS - IN], ready_unknown[KINDS - IN]; /* IN, FEEDBACK */
	uint32_t rx_ports;
};

/* Signals driven to the role. */
struct to {
	uint8_t ready[OUTPUTS];
	uint8_t in_valid, in_keep, in_last, feedback_valid;
	uint64_t in_data, feedback;
};

/* Ready of a stream from the role is held low until valid is set, to test the rules: valid and data are stable, and
 * valid does not wait for ready. A hold without valid ends after one of several times. If valid follows within PROMPT
 * cycles after each of them, it waits for ready. */
static const uint32_t holds[] = {61, 251, 509, 1021};
enum { HOLDS = sizeof holds / sizeof holds[0] };

struct gate {
	uint32_t transfers, ends;
	uint32_t prompt;     /* holds that ended, followed by valid within PROMPT */
	uint32_t low;        /* cycles of this hold */
	uint64_t released;   /* cycle in which the hold ended, or NEVER */
	uint8_t open;        /* the hold is over */
	uint8_t independent; /* the role has set valid without ready */
};

/* Four streams: of the role, of UDP, or of TCP. */
struct set {
	int kind;              /* added to the kinds of streams */
	uint32_t calls, lines; /* accepted by zrlmpid in the step */
	uint64_t since[KINDS];
	struct offer offered[OUTPUTS]; /* at the previous edge, without a transfer */
	struct gate gate[OUTPUTS];
	uint32_t broken; /* violations already reported: a byte for each stream */
	/* Rings of lines and feedback for the role. */
	struct line in[LINES];
	uint64_t feedback[FEEDBACKS];
	uint32_t in_at, in_held, feedback_at, feedback_held;
	/* Network only: datagrams whose metadata was offered, and whose last line was taken. */
	uint64_t offered_metas, taken;
	uint32_t rx_ports; /* last reported */
	struct to now;     /* signals driven to the role */
};

static struct {
	int fd, status, open, alone;
	uint32_t boundary, rank, size, stall;
	uint64_t random;
	uint64_t cycle, answered;   /* current cycle, and cycle of the last answer */
	uint8_t reset;
	int sets;
	struct set set[2];
	/* The step. */
	uint32_t left, budget, more;
	int early; /* end the step */
	struct timespec began;
	/* The next answer. */
	uint32_t records;
	uint8_t answer[HEAD + RESULT_LEN + RESULT_TCP_LEN + MAX_RECORDS * RECORD];
	uint8_t body[STEP_LEN + STEP_TCP_LEN + MAX_RECORDS * RECORD];
	/* Without zrlmpid. */
	struct timespec start;
	uint32_t words, messages, left_messages, got;
} s;

static void put32(uint8_t *b, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(v >> 8 * i);
}

static void put64(uint8_t *b, uint64_t v)
{
	put32(b, (uint32_t)v);
	put32(b + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const uint8_t *b)
{
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t get64(const uint8_t *b) { return get32(b) | (uint64_t)get32(b + 4) << 32; }

/* Ends the simulation, at the request of zrlmpid or after an error. */
static int end(int status, const char *why)
{
	if (why)
		fprintf(stderr, "zrlmpi_cosim: %s\n", why);
	s.status = status;
	s.open = 0;
	return -1;
}

static int send_all(const uint8_t *b, size_t n)
{
	while (n > 0) {
		ssize_t k = write(s.fd, b, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return end(0, NULL);
		b += k;
		n -= (size_t)k;
	}
	return 0;
}

static int receive_all(uint8_t *b, size_t n)
{
	while (n > 0) {
		ssize_t k = read(s.fd, b, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return end(0, NULL);
		b += k;
		n -= (size_t)k;
	}
	return 0;
}

/* Reads a frame into s.body. */
static int receive(uint8_t type, uint32_t *len)
{
	uint8_t head[HEAD];
	if (receive_all(head, HEAD))
		return -1;
	*len = get32(head + 4);
	if (head[0] != type || *len > sizeof s.body)
		return end(2, "malformed frame from zrlmpid");
	return receive_all(s.body, *len);
}

static uint32_t chance(void) /* 0 to 99 */
{
	s.random ^= s.random << 13;
	s.random ^= s.random >> 7;
	s.random ^= s.random << 17;
	return (uint32_t)(s.random >> 32) % 100;
}

static int stalls(void) { return s.stall > 0 && chance() < s.stall; }

static int alone(void);

static void open_boundary(uint32_t boundary)
{
	const char *fd = getenv("ZRLMPI_COSIM_FD"), *messages = getenv("ZRLMPI_COSIM_ALONE");
	s.boundary = boundary;
	s.sets = boundary == NETWORK_TCP ? 2 : 1;
	s.set[1].kind = TCP;
	for (int i = 0; i < KINDS; i++)
		s.set[0].since[i] = s.set[1].since[i] = NEVER;
	for (int i = 0; i < OUTPUTS; i++)
		s.set[0].gate[i].released = s.set[1].gate[i].released = NEVER;
	s.open = 1;
	s.reset = 1;
	s.random = 1;
	if (!fd && messages && boundary == ROLE) {
		const char *words = getenv("ZRLMPI_COSIM_WORDS"), *stall = getenv("ZRLMPI_COSIM_STALL");
		s.alone = 1;
		s.stall = stall ? (uint32_t)atoi(stall) : 0;
		s.messages = s.left_messages = (uint32_t)atoi(messages);
		s.words = words ? (uint32_t)atoi(words) : 1000;
		s.rank = 1;
		s.size = 2;
		if (s.words < 1 || s.words > 2 * LINES || s.messages < 1 || s.stall > 95) {
			fprintf(stderr, "zrlmpi_cosim: ZRLMPI_COSIM_ALONE needs a number of messages, ZRLMPI_COSIM_WORDS 1 to %d, ZRLMPI_COSIM_STALL 0 to 95\n", 2 * LINES);
			exit(2);
		}
		clock_gettime(CLOCK_MONOTONIC, &s.start);
		return;
	}
	if (!fd) {
		fprintf(stderr, boundary == ROLE ? "zrlmpi_cosim: this simulation is started by zrlmpid: a stand-in with kernel \"rtl:PROGRAM\". "
						   "ZRLMPI_COSIM_ALONE=N tries an echo role without it\n"
						 : "zrlmpi_cosim: this simulation is started by zrlmpid: a stand-in with kernel \"rtl-net:PROGRAM\"\n");
		exit(2);
	}
	s.fd = atoi(fd);
	uint8_t hello[HEAD + 16] = {HELLO};
	uint32_t len;
	put32(hello + 4, 16);
	put32(hello + 8, MAGIC);
	put32(hello + 12, VERSION);
	put32(hello + 16, LINES);
	put32(hello + 20, boundary);
	if (send_all(hello, sizeof hello) || receive(START, &len))
		exit(s.status);
	if (len != START_LEN) {
		end(2, "malformed START from zrlmpid");
		exit(2);
	}
	s.rank = get32(s.body);
	s.size = get32(s.body + 4);
	s.stall = get32(s.body + 8);
	s.random = get64(s.body + 16) * 2 + 1;
}

void zrlmpi_cosim_open(void) { open_boundary(ROLE); }

void zrlmpi_network_open(void) { open_boundary(NETWORK); }

void zrlmpi_network_open_tcp(void) { open_boundary(NETWORK_TCP); }

int zrlmpi_cosim_status(void) { return s.status; }

static void hold_line(struct set *t, uint64_t data, uint8_t keep, uint8_t last)
{
	struct line *l = &t->in[(t->in_at + t->in_held++) % LINES];
	l->data = data;
	l->keep = keep;
	l->last = last;
}

static void hold_feedback(struct set *t, uint64_t feedback) { t->feedback[(t->feedback_at + t->feedback_held++) % FEEDBACKS] = feedback; }

/* Polls for the next step: zrlmpid usually sends it sooner than a process wakes up. */
static void poll_step(void)
{
	struct pollfd p = {s.fd, POLLIN, 0};
	for (int i = 0; i < POLLS && poll(&p, 1, 0) == 0; i++)
		sched_yield();
}

/* Reads a step. */
static int step(void)
{
	uint32_t len, fixed = STEP_LEN + (s.sets > 1 ? STEP_TCP_LEN : 0);
	poll_step();
	if (receive(STEP, &len))
		return -1;
	if (len < fixed || (len - fixed) % RECORD || get32(s.body) == 0)
		return end(2, "malformed STEP from zrlmpid");
	s.left = get32(s.body);
	s.budget = get32(s.body + 4);
	s.set[0].calls = get32(s.body + 8);
	s.set[0].lines = get32(s.body + 12);
	s.more = get32(s.body + 16);
	if (s.sets > 1) {
		s.set[1].calls = get32(s.body + STEP_LEN);
		s.set[1].lines = get32(s.body + STEP_LEN + 4);
	}
	for (const uint8_t *b = s.body + fixed; b < s.body + len; b += RECORD) {
		int i = s.sets > 1 && b[14] >= TCP;
		struct set *t = &s.set[i];
		int kind = b[14] - t->kind;
		if (kind == IN && t->in_held < LINES)
			hold_line(t, get64(b), b[12], b[13]);
		else if (kind == FEEDBACK && t->feedback_held < FEEDBACKS)
			hold_feedback(t, s.boundary == ROLE ? b[0] : get64(b));
		else
			return end(2, "more records from zrlmpid than fit");
	}
	clock_gettime(CLOCK_MONOTONIC, &s.began);
	return 0;
}

/* Returns the length of an answer without its records. */
static uint32_t answer_len(void) { return RESULT_LEN + (s.sets > 1 ? RESULT_TCP_LEN : 0); }

/* Answers a step. */
static int answer(void)
{
	uint8_t *b = s.answer;
	uint32_t len = answer_len() + s.records * RECORD;
	memset(b, 0, HEAD);
	b[0] = RESULT;
	put32(b + 4, len);
	b += HEAD;
	put64(b, s.cycle);
	b += 8;
	for (int i = 0; i < s.sets; i++) {
		const struct set *t = &s.set[i];
		put32(b, t->in_held);
		put32(b + 4, t->feedback_held);
		b += 8;
		for (int k = 0; k < KINDS; k++, b += 8)
			put64(b, t->since[k]);
	}
	s.records = 0;
	s.answered = s.cycle;
	return send_all(s.answer, HEAD + len);
}

static void record(int kind, int rule, uint64_t data, uint8_t keep, uint8_t last)
{
	uint8_t *b = s.answer + HEAD + answer_len() + s.records++ * RECORD;
	put64(b, data);
	put32(b + 8, (uint32_t)(s.cycle - s.answered));
	b[12] = keep;
	b[13] = last;
	b[14] = (uint8_t)kind;
	b[15] = (uint8_t)rule;
}

static int over_budget(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - s.began.tv_sec) * 1000000 + (now.tv_nsec - s.began.tv_nsec) / 1000 >= (long)s.budget;
}

/* Records the cycle since which a stream waits for ready. */
static void waits(uint64_t *since, int valid, int ready)
{
	if (!valid || ready)
		*since = NEVER;
	else if (*since == NEVER)
		*since = s.cycle;
}

/* Reports a violation of a rule by the role, once for each stream. */
static void breaks(struct set *t, int kind, int rule, uint64_t data, uint8_t keep, uint8_t last)
{
	uint32_t bit = 1U << (8 * kind + rule);
	if (t->broken & bit)
		return;
	t->broken |= bit;
	record(t->kind + kind, rule, data, keep, last);
	s.early = 1;
}

/* Returns a mask of the bytes in use, by keep. */
static uint64_t used(uint8_t keep)
{
	uint64_t bits = 0;
	for (int i = 0; i < 8; i++)
		bits |= keep >> i & 1 ? (uint64_t)0xff << 8 * i : 0;
	return bits;
}

/* Checks the signals of a stream from the role before the transfers of an edge. */
static void check(struct set *t, int kind, const struct offer *o)
{
	const struct offer *before = &t->offered[kind];
	const struct zrlmpi_unknown *u = o->unknown;
	if (!o->valid && !u->valid && t->since[kind] == NEVER)
		return;
	uint64_t data = kind == OUT && u->data ? u->data & used(o->keep) : u->data;
	if (u->valid)
		breaks(t, kind, UNKNOWN, 0, 0, 0);
	else if (o->valid && (data || u->keep || u->last))
		breaks(t, kind, UNKNOWN, data, u->keep, u->last);
	if (t->since[kind] != NEVER) {
		if (!o->valid)
			breaks(t, kind, WITHDRAWN, t->since[kind], 0, 0);
		else if (o->data != before->data || o->keep != before->keep || o->last != before->last)
			breaks(t, kind, CHANGED, o->data ^ before->data, o->keep ^ before->keep, o->last ^ before->last);
	}
}

/* Holds ready of a stream low for the next transfer. */
static void hold(struct gate *g)
{
	g->open = 0;
	g->low = 0;
	g->released = NEVER;
}

/* Does the same after an event on which a role may act, unless ready is already held. */
static void hold_again(struct gate *g)
{
	if (g->open)
		hold(g);
}

/* Returns whether ready of a stream is held low until the next edge. */
static int held(struct set *t, int kind)
{
	struct gate *g = &t->gate[kind];
	if (g->open || g->transfers >= HELD_TRANSFERS || g->ends >= HELD_ENDS || g->prompt >= HOLDS)
		return 0;
	if (t->since[kind] != NEVER) {
		g->independent |= g->low >= PROMPT;
		g->open = 1;
		return 0;
	}
	if (g->low++ < holds[g->prompt])
		return 1;
	g->open = 1;
	g->ends++;
	g->released = s.cycle;
	return 0;
}

/* Returns whether ready of a stream is set until the next edge. */
static uint8_t ready(struct set *t, int kind, uint32_t room)
{
	if (room == 0 || held(t, kind))
		return 0;
	uint64_t released = t->gate[kind].released;
	return (released != NEVER && s.cycle - released < PROMPT) || !stalls();
}

/* Records a transfer on a stream from the role. */
static void transferred(struct set *t, int kind)
{
	struct gate *g = &t->gate[kind];
	g->transfers++;
	if (g->released != NEVER && s.cycle - g->released <= PROMPT && !g->independent && ++g->prompt == HOLDS)
		breaks(t, kind, WAITS, g->released, 0, 0);
	hold(g);
}

/* Sets the signals driven to the role until the next edge. An offer remains until it is taken. */
static void drive(struct set *t, int moved)
{
	struct to *e = &t->now;
	e->ready[CALL] = ready(t, CALL, t->calls);
	e->ready[OUT] = ready(t, OUT, t->lines);
	/* The shell offers the metadata of a datagram not later than its first line, and after the last
	 * line of the previous datagram. */
	int between = t->offered_metas == t->taken;
	if (moved & 1 << FEEDBACK || !e->feedback_valid) {
		e->feedback_valid = t->feedback_held > 0 && (s.boundary == ROLE || between) && !stalls();
		e->feedback = e->feedback_valid ? t->feedback[t->feedback_at % FEEDBACKS] : 0;
		t->offered_metas += e->feedback_valid;
	}
	if (moved & 1 << IN || !e->in_valid) {
		struct line *l = &t->in[t->in_at % LINES];
		e->in_valid = t->in_held > 0 && (s.boundary == ROLE || t->offered_metas != t->taken) && !stalls();
		e->in_data = e->in_valid ? l->data : 0;
		e->in_keep = e->in_valid ? l->keep : 0;
		e->in_last = e->in_valid ? l->last : 0;
	}
}

/* Performs the transfer at an edge on a stream from the role, and returns its bit. */
static int transfer_out(struct set *t, int kind, const struct offer *o)
{
	check(t, kind, o);
	waits(&t->since[kind], o->valid, t->now.ready[kind]);
	if (!o->valid)
		return 0;
	if (!t->now.ready[kind]) {
		t->offered[kind] = *o;
		return 0;
	}
	record(t->kind + kind, 0, o->data, o->keep, kind == OUT && o->last);
	transferred(t, kind);
	if (kind == CALL) {
		t->calls--;
		s.early |= s.boundary == ROLE && o->keep % 2 == 1; /* a receive: a send is complete with its last line */
		hold(&t->gate[OUT]);
	} else {
		t->lines--;
		s.early |= o->last;
		if (o->last)
			hold_again(&t->gate[CALL]);
	}
	return 1 << kind;
}

/* Performs the transfers at an edge on a set of streams. */
static int transfer(struct set *t, const struct from *r)
{
	struct to *e = &t->now;
	int moved = 0;
	waits(&t->since[IN], e->in_valid, r->ready[0]);
	waits(&t->since[FEEDBACK], e->feedback_valid, r->ready[FEEDBACK - IN]);
	if (s.reset)
		return 0;
	if (e->in_valid && r->ready_unknown[0])
		breaks(t, IN, UNKNOWN, 0, 0, 0);
	if (e->feedback_valid && r->ready_unknown[FEEDBACK - IN])
		breaks(t, FEEDBACK, UNKNOWN, 0, 0, 0);
	moved |= transfer_out(t, CALL, &r->out[CALL]);
	moved |= transfer_out(t, OUT, &r->out[OUT]);
	if (e->in_valid && r->ready[0]) {
		moved |= 1 << IN;
		t->in_at++;
		t->taken += e->in_last;
		s.early |= --t->in_held == 0 && s.more;
		if (e->in_last)
			hold_again(&t->gate[CALL]);
	}
	if (e->feedback_valid && r->ready[FEEDBACK - IN]) {
		moved |= 1 << FEEDBACK;
		t->feedback_at++;
		t->feedback_held--;
		hold_again(&t->gate[CALL]);
		hold_again(&t->gate[OUT]);
	}
	if (r->rx_ports != t->rx_ports) {
		record(t->kind + PORTS, 0, r->rx_ports, 0, 0);
		t->rx_ports = r->rx_ports;
		s.early = 1;
	}
	return moved;
}

/* Performs the transfers at an edge, and sets the signals driven to the role. */
static int cycle(const struct from *r)
{
	int moved[2] = {0};
	if (!s.open)
		return -1;
	if (s.left == 0 && !s.alone && step())
		return -1;
	s.cycle++;
	s.early = 0;
	for (int i = 0; i < s.sets; i++)
		moved[i] = transfer(&s.set[i], &r[i]);
	if (s.alone) {
		if (alone())
			return -1;
	} else {
		s.left--;
		s.early |= s.records > MAX_RECORDS - EDGE_RECORDS;
		if (s.early || s.left == 0 || (s.cycle % BUDGET_CYCLES == 0 && over_budget())) {
			s.left = 0;
			if (answer())
				return -1;
			/* The next signals depend on the next step. */
			if (step())
				return -1;
		}
	}
	s.reset = s.cycle < ZRLMPI_COSIM_RESET;
	for (int i = 0; i < s.sets && !s.reset; i++)
		drive(&s.set[i], moved[i]);
	return moved[0] | moved[1] << TCP;
}

int zrlmpi_cosim_cycle(const struct zrlmpi_role *r, struct zrlmpi_engine *engine)
{
	struct from from = {
		{{r->call_valid, r->mpi_call, 0, r->count | (uint64_t)r->rank << 32, &r->call_unknown},
		 {r->out_valid, r->out_keep, r->out_last, r->out_data, &r->out_unknown}},
		{r->in_ready, r->feedback_ready},
		{r->in_ready_unknown, r->feedback_ready_unknown},
		0,
	};
	int moved = cycle(&from);
	const struct to *e = &s.set[0].now;
	engine->reset = s.reset;
	engine->rank = s.rank;
	engine->size = s.size;
	engine->call_ready = e->ready[CALL];
	engine->out_ready = e->ready[OUT];
	engine->in_valid = e->in_valid;
	engine->in_keep = e->in_keep;
	engine->in_last = e->in_last;
	engine->in_data = e->in_data;
	engine->feedback_valid = e->feedback_valid;
	engine->feedback = (uint8_t)e->feedback;
	return moved;
}

static struct from sampled(const struct zrlmpi_streams_role *r)
{
	struct from from = {
		{{r->out_meta_valid, 0, 0, r->out_meta, &r->out_meta_unknown},
		 {r->out_valid, r->out_keep, r->out_last, r->out_data, &r->out_unknown}},
		{r->in_ready, r->in_meta_ready},
		{r->in_ready_unknown, r->in_meta_ready_unknown},
		r->rx_ports,
	};
	return from;
}

static struct zrlmpi_streams driven(const struct to *e)
{
	struct zrlmpi_streams to = {0};
	to.out_meta_ready = e->ready[CALL];
	to.out_ready = e->ready[OUT];
	to.in_valid = e->in_valid;
	to.in_keep = e->in_keep;
	to.in_last = e->in_last;
	to.in_data = e->in_data;
	to.in_meta_valid = e->feedback_valid;
	to.in_meta = e->feedback;
	return to;
}

int zrlmpi_network_cycle(const struct zrlmpi_network_role *r, struct zrlmpi_network *shell)
{
	struct from from[2] = {sampled(&r->udp), sampled(&r->tcp)};
	int moved = cycle(from);
	shell->reset = s.reset;
	shell->rank = s.rank;
	shell->size = s.size;
	shell->udp = driven(&s.set[0].now);
	shell->tcp = driven(&s.set[1].now);
	return moved;
}

/* Prints the violation in a record. Used without zrlmpid. */
static void report(const uint8_t *b)
{
	static const char *const streams[] = {"soMPIif", "soMPI_data", "siMPI_data", "siMPIFeB"};
	const char *signal = b[14] > OUT ? "tready" : get64(b) || (b[14] == CALL && b[12]) ? "tdata" : b[12] ? "tkeep" : b[13] ? "tlast" : "tvalid";
	const char *problem = b[15] == CHANGED ? "changed before tready" : "neither 0 nor 1";
	if (b[15] == WITHDRAWN || b[15] == WAITS) {
		signal = "tvalid";
		problem = b[15] == WITHDRAWN ? "withdrawn before tready" : "follows tready";
	}
	fprintf(stderr, "zrlmpi_cosim: %s_%s at cycle %llu: %s\n", streams[b[14]], signal, (unsigned long long)s.cycle, problem);
}

/* Runs one cycle of an engine that exchanges messages with an echo role. Used without zrlmpid. */
static int alone(void)
{
	static uint32_t lines;
	for (uint32_t i = 0; i < s.records; i++) {
		const uint8_t *b = s.answer + HEAD + RESULT_LEN + i * RECORD;
		if (b[15]) {
			report(b);
			if (b[15] != WAITS)
				return end(1, NULL);
		} else if (b[14] == CALL) {
			if (b[12] == 1 || b[12] == 3) {
				lines = (s.words + 1) / 2;
				for (uint32_t k = 0; k < lines; k++)
					hold_line(&s.set[0], k * 2654435761U + s.left_messages, (uint8_t)(k == lines - 1 && s.words % 2 ? 0x0f : 0xff), k == lines - 1);
				hold_feedback(&s.set[0], 1);
			}
			s.got = 0;
		} else {
			uint32_t k = s.got++;
			if (get64(b) != (uint64_t)(k * 2654435761U + s.left_messages) || b[13] != (k == lines - 1)) {
				fprintf(stderr, "zrlmpi_cosim: line %u differs at cycle %llu\n", k, (unsigned long long)s.cycle);
				return end(1, NULL);
			}
			if (b[13]) {
				hold_feedback(&s.set[0], 1);
				s.left_messages--;
			}
		}
	}
	s.records = 0;
	s.answered = s.cycle;
	s.set[0].calls = 1;
	s.set[0].lines = LINES;
	if (s.left_messages > 0)
		return 0;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double seconds = (double)(now.tv_sec - s.start.tv_sec) + (double)(now.tv_nsec - s.start.tv_nsec) / 1e9;
	printf("%u messages of %u words, %llu cycles in %.3f s: %.0f cycles/s\n", s.messages, s.words, (unsigned long long)s.cycle, seconds, (double)s.cycle / seconds);
	fflush(stdout);
	return end(0, NULL);
}
