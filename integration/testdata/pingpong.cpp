// A program for upstream's CPU library (ZRLMPI.hpp), to be built with it like
// any program of its users. Rank 0 sends a message to rank 1 and checks what
// comes back, three times; rank 1 sends back what it receives, three times.
// Its one argument is the number of words, with an f for MPI_FLOAT: 347 or 347f.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ZRLMPI.hpp"

int app_main(int argc, char **argv) {
  const char *arg = argc > 1 ? argv[1] : "1";
  const int words = atoi(arg);
  const MPI_Datatype type = strchr(arg, 'f') ? MPI_FLOAT : MPI_INTEGER;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<int> out(words + 1), in(words + 1);
  MPI_Status status;
  for (int round = 0; round < 3; round++) {
    if (rank == 1) {
      MPI_Recv(in.data(), words, type, 0, 0, MPI_COMM_WORLD, &status);
      MPI_Send(in.data(), words, type, 0, 0, MPI_COMM_WORLD);
      continue;
    }
    for (int i = 0; i < words; i++) {
      out[i] = static_cast<int>(0x9e3779b9u * (i + 1) + round);
    }
    MPI_Send(out.data(), words, type, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(in.data(), words, type, 1, 0, MPI_COMM_WORLD, &status);
    if (memcmp(in.data(), out.data(), words * 4u) != 0) {
      printf("round %d: other words came back\n", round);
      fflush(stdout);
      exit(1);
    }
  }
  printf("pingpong of %s words: ok\n", arg);
  fflush(stdout);
  return 0;
}
