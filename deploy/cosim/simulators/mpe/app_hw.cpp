// The FPGA's part of upstream's example pingpong, for messages of several lengths: it receives each message from one
// rank, and sends it to another. Both ranks and the lengths are arguments of the program: 347 means INT words, 347f
// FLOAT. With r347 it only receives. With s347 it only sends; word i of argument k is 100000 k + i, both counted from
// 0.
#include "app_hw.hpp"
#include <cstdlib>

char **app_arguments;

static int data[1 << 16];

int app_main(stream<MPI_Interface> *soMPIif, stream<MPI_Feedback> *siMPIFeB, stream<Axis<64> > *soMPI_data, stream<Axis<64> > *siMPI_data) {
  MPI_Status status;
  MPI_Init();
  const int from = atoi(app_arguments[0]), to = atoi(app_arguments[1]);
  for (char **length = app_arguments + 2; *length; length++) {
    char *end;
    const bool receives = **length != 's', sends = **length != 'r';
    const int words = (int) strtol(*length + (receives != sends), &end, 10);
    const MPI_Datatype type = *end == 'f' ? MPI_FLOAT : MPI_INTEGER;
    if (receives)
      MPI_Recv(soMPIif, siMPIFeB, siMPI_data, data, words, type, from, 0, MPI_COMM_WORLD, &status);
    else
      for (int i = 0; i < words; i++) data[i] = 100000 * (int) (length - app_arguments - 2) + i;
    if (sends)
      MPI_Send(soMPIif, siMPIFeB, soMPI_data, data, words, type, to, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
