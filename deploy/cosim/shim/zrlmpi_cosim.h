/* The simulator's side of the boundary between a rank of zrlmpid and FPGA logic in
 * simulation (docs/cosim.md). It depends only on POSIX, and is the same for all
 * simulators: each calls zrlmpi_cosim_open() once, and zrlmpi_cosim_cycle() for every
 * rising edge of the clock. If the MPE is part of the simulation, it calls
 * zrlmpi_network_open() and zrlmpi_network_cycle() instead. */
#ifndef ZRLMPI_COSIM_H
#define ZRLMPI_COSIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of cycles of reset at the beginning. */
#define ZRLMPI_COSIM_RESET 16

/* Bits of a stream from the role that are neither 0 nor 1, such as U and X of VHDL. They are 0 in the stream itself. */
struct zrlmpi_unknown {
	uint8_t valid, keep, last; /* keep is mpi_call for soMPIif */
	uint64_t data;             /* for soMPIif: count in the low half, rank in the high half */
};

/* Signals driven by the role, sampled before the edge. */
struct zrlmpi_role {
	uint8_t call_valid, mpi_call;        /* soMPIif */
	uint32_t count, rank;
	uint8_t out_valid, out_keep, out_last; /* soMPI_data */
	uint64_t out_data;
	uint8_t in_ready;                    /* siMPI_data */
	uint8_t feedback_ready;              /* siMPIFeB */
	struct zrlmpi_unknown call_unknown, out_unknown;
	uint8_t in_ready_unknown, feedback_ready_unknown;
};

/* Signals driven to the role, from this edge to the next. */
struct zrlmpi_engine {
	uint8_t reset;
	uint32_t rank, size;
	uint8_t call_ready;                  /* soMPIif */
	uint8_t out_ready;                   /* soMPI_data */
	uint8_t in_valid, in_keep, in_last;  /* siMPI_data */
	uint64_t in_data;
	uint8_t feedback_valid, feedback;    /* siMPIFeB */
};

/* Transfers at an edge: bits of the result of zrlmpi_cosim_cycle. */
enum { ZRLMPI_CALL = 1, ZRLMPI_OUT = 2, ZRLMPI_IN = 4, ZRLMPI_FEEDBACK = 8 };

/* Sends a hello to zrlmpid, which has started this process. Without zrlmpid, the process exits with
 * a message and status 2. But if ZRLMPI_COSIM_ALONE is N, it takes the place of zrlmpid: as rank 0,
 * it sends N messages of ZRLMPI_COSIM_WORDS words (default 1000) to an echo role, and checks them and
 * the rules of its streams, with stalls in ZRLMPI_COSIM_STALL percent of cycles (default 0). */
void zrlmpi_cosim_open(void);

/* Performs the transfers of a rising edge, and sets the signals driven to the role from now
 * on. Returns the transfers, or -1 at the end of the simulation, whose status is
 * zrlmpi_cosim_status(). */
int zrlmpi_cosim_cycle(const struct zrlmpi_role *role, struct zrlmpi_engine *engine);

/* Returns the exit status of the simulation, for any boundary. */
int zrlmpi_cosim_status(void);

/* The boundary to the network: role and MPE are simulated (kernel rtl-net), and zrlmpid is the
 * shell, which exchanges datagrams. It has the streams of the role's interface to the cloudFPGA
 * shell Themisto. The first byte of a datagram is in bits 7-0 of its first line. */

/* Returns the metadata of a datagram as a line, with the bits: dst_rank 7-0, dst_port 23-8, src_rank 31-24,
 * src_port 47-32, len 63-48. */
static inline uint64_t zrlmpi_meta(uint8_t dst_rank, uint16_t dst_port, uint8_t src_rank, uint16_t src_port, uint16_t len)
{
	return dst_rank | (uint64_t)dst_port << 8 | (uint64_t)src_rank << 24 | (uint64_t)src_port << 32 | (uint64_t)len << 48;
}

/* Signals driven by the role on its streams of UDP, or of TCP, where a chunk of a connection takes the place of a
 * datagram. The comments name the ports of UDP. */
struct zrlmpi_streams_role {
	uint8_t out_meta_valid;                /* soROLE_Nrc_Udp_Meta */
	uint64_t out_meta;
	uint8_t out_valid, out_keep, out_last; /* soNRC_Udp_Data */
	uint64_t out_data;
	uint8_t in_ready;                      /* siNRC_Udp_Data */
	uint8_t in_meta_ready;                 /* siNRC_Role_Udp_Meta */
	uint32_t rx_ports;                     /* poROL_Nrc_Udp_Rx_ports: bit n opens port 2718 + n */
	struct zrlmpi_unknown out_meta_unknown, out_unknown;
	uint8_t in_ready_unknown, in_meta_ready_unknown;
};

/* Signals driven to the role on these streams. tkeep of metadata is 0xff, and tlast is 1. */
struct zrlmpi_streams {
	uint8_t out_meta_ready;                /* soROLE_Nrc_Udp_Meta */
	uint8_t out_ready;                     /* soNRC_Udp_Data */
	uint8_t in_valid, in_keep, in_last;    /* siNRC_Udp_Data */
	uint64_t in_data;
	uint8_t in_meta_valid;                 /* siNRC_Role_Udp_Meta */
	uint64_t in_meta;
};

/* Signals driven by the role, sampled before the edge. */
struct zrlmpi_network_role {
	struct zrlmpi_streams_role udp, tcp;   /* tcp after zrlmpi_network_open_tcp */
};

/* Signals driven to the role, from this edge to the next. */
struct zrlmpi_network {
	uint8_t reset;
	uint32_t rank, size;                   /* piFMC_ROLE_rank, piFMC_ROLE_size */
	struct zrlmpi_streams udp, tcp;
};

/* Transfers at an edge: bits of the result of zrlmpi_network_cycle. The bits of TCP are shifted left by 8. */
enum { ZRLMPI_OUT_META = 1, ZRLMPI_OUT_DATA = 2, ZRLMPI_IN_DATA = 4, ZRLMPI_IN_META = 8 };

/* Like zrlmpi_cosim_open and zrlmpi_cosim_cycle, without ZRLMPI_COSIM_ALONE. A role with streams of TCP uses
 * zrlmpi_network_open_tcp. */
void zrlmpi_network_open(void);
void zrlmpi_network_open_tcp(void);
int zrlmpi_network_cycle(const struct zrlmpi_network_role *role, struct zrlmpi_network *shell);

#ifdef __cplusplus
}
#endif
#endif
