// What upstream's compiler expects an FPGA to have, for a role that is a program on the
// MPE interface (docs/mpe_interface.md). It takes the place of upstream's header of
// this name for hardware: see role.cpp.
#ifndef ROLE_ZRLMPI_HPP
#define ROLE_ZRLMPI_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "zrlmpi_common.hpp" // upstream's

#define MPI_Status uint8_t
#define MPI_Comm uint8_t
#define MPI_Datatype uint8_t
#define MPI_COMM_WORLD 0
#define MPI_INTEGER 0
#define MPI_FLOAT 1

// The wires to the MPE are passed on, and nothing else is done with them.
template <class T> struct stream {};
template <int width> struct Axis {};
typedef stream<MPI_Interface> *Calls;
typedef stream<MPI_Feedback> *Feedback;
typedef stream<Axis<64>> *Data;

void MPI_Init();
void MPI_Init(void *, void *);
void MPI_Finalize();
void MPI_Comm_rank(MPI_Comm, int *rank);
void MPI_Send(Calls, Feedback, Data, int *data, int count, MPI_Datatype, int destination, int tag, MPI_Comm);
void MPI_Recv(Calls, Feedback, Data, int *data, int count, MPI_Datatype, int source, int tag, MPI_Comm, MPI_Status *);
// Buffers in DRAM are no different here.
#define MPI_Send_DRAM MPI_Send
#define MPI_Recv_DRAM MPI_Recv

void my_free(void *);
void my_exit(int);
void my_perror(const char *);

#endif
