/* The arrays of cosim.vhdl and cosim_network.vhdl, as GHDL's VHPIDIRECT passes them: a byte for each std_logic, the
 * leftmost first. */
#include <stdio.h>
#include <stdlib.h>

#include "zrlmpi_cosim.h"

/* The positions of std_ulogic: U X 0 1 Z W L H -. */
enum { ZERO = 2, ONE = 3, HIGH = 7 };
#define NAMES "UX01ZWLH-"

static const uint8_t *from;
static uint8_t *to;

static uint64_t take(int bits)
{
	uint64_t v = 0;
	for (; bits > 0; bits--, from++)
		v = v << 1 | (*from == ONE || *from == HIGH);
	return v;
}

static void give(uint64_t v, int bits)
{
	while (bits > 0)
		*to++ = (uint8_t)(ZERO + (v >> --bits & 1));
}

/* Takes a signal that is 0 or 1 in every working role, and says once if it is not. */
static uint8_t control(const char *name, uint64_t cycle)
{
	static int said;
	if (*from != ZERO && *from != ONE && *from != HIGH && *from != 6 && cycle > ZRLMPI_COSIM_RESET && said < 8) {
		fprintf(stderr, "zrlmpi_cosim: %s is '%c' at cycle %llu, after reset: it is taken for 0\n", name, NAMES[*from % 9], (unsigned long long)cycle);
		said++;
	}
	return (uint8_t)take(1);
}

void zrlmpi_ghdl_cycle(const uint8_t *role, uint8_t *engine)
{
	static uint64_t cycle;
	struct zrlmpi_role r;
	struct zrlmpi_engine e = {0};
	cycle++;
	from = role;
	r.call_valid = control("soMPIif_tvalid", cycle);
	r.rank = (uint32_t)take(32);
	r.count = (uint32_t)take(32);
	r.mpi_call = (uint8_t)take(8);
	r.out_valid = control("soMPI_data_tvalid", cycle);
	r.out_keep = (uint8_t)take(8);
	r.out_last = (uint8_t)take(1);
	r.out_data = take(64);
	r.in_ready = control("siMPI_data_tready", cycle);
	r.feedback_ready = control("siMPIFeB_tready", cycle);
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

static void take_streams(struct zrlmpi_streams_role *r, const char *const names[4], uint64_t cycle)
{
	r->out_meta_valid = control(names[0], cycle);
	r->out_meta = take(64);
	r->out_valid = control(names[1], cycle);
	r->out_keep = (uint8_t)take(8);
	r->out_last = (uint8_t)take(1);
	r->out_data = take(64);
	r->in_ready = control(names[2], cycle);
	r->in_meta_ready = control(names[3], cycle);
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
	static const char *const udp[] = {"soROLE_Nrc_Udp_Meta_TVALID", "soNRC_Udp_Data_tvalid", "siNRC_Udp_Data_tready", "siNRC_Role_Udp_Meta_TREADY"};
	static const char *const tcp[] = {"soROLE_Nrc_Tcp_Meta_TVALID", "soNRC_Tcp_Data_tvalid", "siNRC_Tcp_Data_tready", "siNRC_Role_Tcp_Meta_TREADY"};
	static uint64_t cycle;
	struct zrlmpi_network_role r;
	struct zrlmpi_network n = {0};
	cycle++;
	from = role;
	take_streams(&r.udp, udp, cycle);
	from = tcp_role;
	take_streams(&r.tcp, tcp, cycle);
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
