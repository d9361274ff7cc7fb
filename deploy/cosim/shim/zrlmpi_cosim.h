/* The simulator's side of the boundary between a rank of zrlmpid and an FPGA's role in
 * simulation (docs/cosim.md). It has no dependencies but POSIX, and is the same for all
 * simulators: each calls zrlmpi_cosim_open() once, and zrlmpi_cosim_cycle() for every
 * rising edge of the clock. */
#ifndef ZRLMPI_COSIM_H
#define ZRLMPI_COSIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cycles of reset at the beginning. */
#define ZRLMPI_COSIM_RESET 16

/* What the role drives, sampled before the edge. */
struct zrlmpi_role {
	uint8_t call_valid, mpi_call;        /* soMPIif */
	uint32_t count, rank;
	uint8_t out_valid, out_keep, out_last; /* soMPI_data */
	uint64_t out_data;
	uint8_t in_ready;                    /* siMPI_data */
	uint8_t feedback_ready;              /* siMPIFeB */
};

/* What is driven to the role, from this edge to the next. */
struct zrlmpi_engine {
	uint8_t reset;
	uint32_t rank, size;
	uint8_t call_ready;                  /* soMPIif */
	uint8_t out_ready;                   /* soMPI_data */
	uint8_t in_valid, in_keep, in_last;  /* siMPI_data */
	uint64_t in_data;
	uint8_t feedback_valid, feedback;    /* siMPIFeB */
};

/* The transfers of an edge: bits of the value of zrlmpi_cosim_cycle. */
enum { ZRLMPI_CALL = 1, ZRLMPI_OUT = 2, ZRLMPI_IN = 4, ZRLMPI_FEEDBACK = 8 };

/* Says hello to zrlmpid, which has started this process. Without it, the process ends with
 * a message and status 2; if ZRLMPI_COSIM_ALONE is N, it plays zrlmpid itself: rank 0 that
 * sends N messages of ZRLMPI_COSIM_WORDS words (1000) to an echo role and checks them. */
void zrlmpi_cosim_open(void);

/* Carries out the transfers of a rising edge, and sets what is driven to the role from now
 * on. Returns the transfers, or -1 when the simulation is to end with status
 * zrlmpi_cosim_status(). */
int zrlmpi_cosim_cycle(const struct zrlmpi_role *role, struct zrlmpi_engine *engine);

int zrlmpi_cosim_status(void);

#ifdef __cplusplus
}
#endif
#endif
