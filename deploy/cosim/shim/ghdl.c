/* The arrays of cosim.vhdl and cosim_network.vhdl, as passed by GHDL's VHPIDIRECT: a byte for each std_logic, the
 * leftmost first. */
#include <stdlib.h>

#include "zrlmpi_cosim.h"

/* The positions of std_ulogic: U X 0 1 Z W L H -. */
enum { ZERO = 2, ONE = 3 };
/* 0 or 1, or UNKNOWN. */
enum { UNKNOWN = 2 };
static const uint8_t level[16] = {UNKNOWN, UNKNOWN, 0, 1, UNKNOWN, UNKNOWN, 0, 1, UNKNOWN};

static const uint8_t *from;
static uint8_t *to;
static uint64_t unknown; /* unknown bits of the last value taken */

static uint64_t take(int bits)
{
	uint64_t v = 0;
	for (unknown = 0; bits > 0; bits--, from++) {
		uint8_t l = level[*from & 15];
		v = v << 1 | (l & 1);
		unknown = unknown << 1 | l >> 1;
	}
	return v;
}

static uint8_t take_bit(uint8_t *u)
{
	uint8_t v = (uint8_t)take(1);
	*u = (uint8_t)unknown;
	return v;
}

static void give(uint64_t v, int bits)
{
	while (bits > 0)
		*to++ = (uint8_t)(ZERO + (v >> --bits & 1));
}

void zrlmpi_ghdl_cycle(const uint8_t *role, uint8_t *engine)
{
	struct zrlmpi_role r = {0};
	struct zrlmpi_engine e = {0};
	from = role;
	r.call_valid = take_bit(&r.call_unknown.valid);
	r.rank = (uint32_t)take(32);
	r.call_unknown.data = unknown << 32;
	r.count = (uint32_t)take(32);
	r.call_unknown.data |= unknown;
	r.mpi_call = (uint8_t)take(8);
	r.call_unknown.keep = (uint8_t)unknown;
	r.out_valid = take_bit(&r.out_unknown.valid);
	r.out_keep = (uint8_t)take(8);
	r.out_unknown.keep = (uint8_t)unknown;
	r.out_last = take_bit(&r.out_unknown.last);
	r.out_data = take(64);
	r.out_unknown.data = unknown;
	r.in_ready = take_bit(&r.in_ready_unknown);
	r.feedback_ready = take_bit(&r.feedback_ready_unknown);
	int stop = zrlmpi_cosim_cycle(&r, &e) < 0;
	if (stop && zrlmpi_cosim_status() != 0)
		exit(zrlmpi_cosim_status());
	to = engine;
	give((uint64_t)stop, 1);
	give(e.reset, 1);
	give(e.rank, 32);
	give(e.size, 32);
	give(e.call_ready, 1);
	give(e.out_ready, 1);
	give(e.in_valid, 1);
	give(e.in_keep, 8);
	give(e.in_last, 1);
	give(e.in_data, 64);
	give(e.feedback_valid, 1);
	give(e.feedback, 8);
}

static void take_streams(struct zrlmpi_streams_role *r)
{
	r->out_meta_valid = take_bit(&r->out_meta_unknown.valid);
	r->out_meta = take(64);
	r->out_meta_unknown.data = unknown;
	r->out_valid = take_bit(&r->out_unknown.valid);
	r->out_keep = (uint8_t)take(8);
	r->out_unknown.keep = (uint8_t)unknown;
	r->out_last = take_bit(&r->out_unknown.last);
	r->out_data = take(64);
	r->out_unknown.data = unknown;
	r->in_ready = take_bit(&r->in_ready_unknown);
	r->in_meta_ready = take_bit(&r->in_meta_ready_unknown);
	r->rx_ports = (uint32_t)take(32);
}

static void give_streams(const struct zrlmpi_streams *n)
{
	give(n->out_meta_ready, 1);
	give(n->out_ready, 1);
	give(n->in_valid, 1);
	give(n->in_keep, 8);
	give(n->in_last, 1);
	give(n->in_data, 64);
	give(n->in_meta_valid, 1);
	give(n->in_meta, 64);
}

void zrlmpi_ghdl_network_cycle(const uint8_t *role, const uint8_t *tcp_role, uint8_t *shell, uint8_t *tcp_shell)
{
	struct zrlmpi_network_role r = {0};
	struct zrlmpi_network n = {0};
	from = role;
	take_streams(&r.udp);
	from = tcp_role;
	take_streams(&r.tcp);
	int stop = zrlmpi_network_cycle(&r, &n) < 0;
	if (stop && zrlmpi_cosim_status() != 0)
		exit(zrlmpi_cosim_status());
	to = shell;
	give((uint64_t)stop, 1);
	give(n.reset, 1);
	give(n.rank, 32);
	give(n.size, 32);
	give_streams(&n.udp);
	to = tcp_shell;
	give_streams(&n.tcp);
}
