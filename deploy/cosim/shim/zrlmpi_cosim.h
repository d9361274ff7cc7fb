/* The simulator's side of the boundary between a rank of zrlmpid and FPGA logic in
 * simulation (docs/cosim.md). It has no dependencies but POSIX, and is the same for all
 * simulators: each calls zrlmpi_cosim_open() once, and zrlmpi_cosim_cycle() for every
 * rising edge of the clock. With the role's own MPE in the simulation, these are
 * zrlmpi_network_open() and zrlmpi_network_cycle(). */
#ifndef ZRLMPI_COSIM_H
#define ZRLMPI_COSIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cycles of reset at the beginning. */
#define ZRLMPI_COSIM_RESET 16

/* Bits of a stream from the role that are neither 0 nor 1, as U and X of VHDL. They count as 0 in the stream itself. */
struct zrlmpi_unknown {
	uint8_t valid, keep, last; /* keep of soMPIif: mpi_call */
	uint64_t data;             /* of soMPIif: count in the low half, rank in the high one */
};

/* What the role drives, sampled before the edge. */
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
 * sends N messages of ZRLMPI_COSIM_WORDS words (1000) to an echo role and checks them and the rules of its streams, with
 * stalls in ZRLMPI_COSIM_STALL percent of cycles (0). */
void zrlmpi_cosim_open(void);

/* Carries out the transfers of a rising edge, and sets what is driven to the role from now
 * on. Returns the transfers, or -1 when the simulation is to end with status
 * zrlmpi_cosim_status(). */
int zrlmpi_cosim_cycle(const struct zrlmpi_role *role, struct zrlmpi_engine *engine);

/* The status with which the simulation is to end, whatever its boundary. */
int zrlmpi_cosim_status(void);

/* The boundary to the network: role and MPE are simulated (kernel rtl-net), and zrlmpid is the
 * shell, which exchanges datagrams. The streams are those of the role's interface to the cloudFPGA
 * shell Themisto. The first byte of a datagram is in bits 7-0 of its first line. */

/* The metadata of a datagram, in the bits of its line: dst_rank 7-0, dst_port 23-8, src_rank 31-24,
 * src_port 47-32, len 63-48. */
static inline uint64_t zrlmpi_meta(uint8_t dst_rank, uint16_t dst_port, uint8_t src_rank, uint16_t src_port, uint16_t len)
{
	return dst_rank | (uint64_t)dst_port << 8 | (uint64_t)src_rank << 24 | (uint64_t)src_port << 32 | (uint64_t)len << 48;
}

/* What the role drives of its streams of UDP or of TCP, where a chunk of a connection is what a datagram is for UDP. The
 * names are those of UDP. */
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

/* What is driven to them. tkeep of metadata is 0xff, and tlast 1. */
struct zrlmpi_streams {
	uint8_t out_meta_ready;                /* soROLE_Nrc_Udp_Meta */
	uint8_t out_ready;                     /* soNRC_Udp_Data */
	uint8_t in_valid, in_keep, in_last;    /* siNRC_Udp_Data */
	uint64_t in_data;
	uint8_t in_meta_valid;                 /* siNRC_Role_Udp_Meta */
	uint64_t in_meta;
};

/* What the role drives, sampled before the edge. */
struct zrlmpi_network_role {
	struct zrlmpi_streams_role udp, tcp;   /* tcp after zrlmpi_network_open_tcp */
};

/* What is driven to the role, from this edge to the next. */
struct zrlmpi_network {
	uint8_t reset;
	uint32_t rank, size;                   /* piFMC_ROLE_rank, piFMC_ROLE_size */
	struct zrlmpi_streams udp, tcp;
};

/* The transfers of an edge: bits of the value of zrlmpi_network_cycle; those of TCP are 8 bits further left. */
enum { ZRLMPI_OUT_META = 1, ZRLMPI_OUT_DATA = 2, ZRLMPI_IN_DATA = 4, ZRLMPI_IN_META = 8 };

/* As zrlmpi_cosim_open and zrlmpi_cosim_cycle. There is no ZRLMPI_COSIM_ALONE. A role with streams of TCP opens
 * with _tcp. */
void zrlmpi_network_open(void);
void zrlmpi_network_open_tcp(void);
int zrlmpi_network_cycle(const struct zrlmpi_network_role *role, struct zrlmpi_network *shell);

#ifdef __cplusplus
}
#endif
#endif
