// A program for upstream's C++ API (ZRLMPI.hpp): every rank but 0 passes messages on, from the rank below to the one above. Its argument
// is how many, of how many words, and how many of them the last rank keeps: 3x6-1.
#include <cstdio>
#include <vector>

#include "ZRLMPI.hpp"

int app_main(int argc, char **argv) {
  int rank, size, rounds = 1, words = 1, kept = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && sscanf(argv[1], "%dx%d-%d", &rounds, &words, &kept) < 2) {
    MPI_Finalize();
    return 1;
  }
  std::vector<int> data(words + 1);
  for (int i = 0; i < rounds; i++) {
    MPI_Status status;
    MPI_Recv(data.data(), words, MPI_INTEGER, rank - 1, 0, MPI_COMM_WORLD, &status);
    if (rank == size - 1 && i >= rounds - kept)
      continue;
    MPI_Send(data.data(), words, MPI_INTEGER, (rank + 1) % size, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
