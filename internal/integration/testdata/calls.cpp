// A program for upstream's CPU library (ZRLMPI.hpp), to be built with it like any
// program of its users. It makes the calls that its standard input names, one a
// line, and prints a line when one has returned:
//
//   recv SOURCE WORDS       received HEX, 8 digits a word; the buffer holds zeros before
//   send DESTINATION HEX    sent
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ZRLMPI.hpp"

static bool next_line(std::string &line) {
  line.clear();
  for (int c = getchar(); c != EOF; c = getchar()) {
    if (c == '\n') {
      return true;
    }
    line.push_back(static_cast<char>(c));
  }
  return false;
}

static void receive(int source, int words) {
  MPI_Status status;
  std::vector<int> data(words + 1);
  MPI_Recv(data.data(), words, MPI_INTEGER, source, 0, MPI_COMM_WORLD, &status);
  printf("\nreceived ");
  for (int i = 0; i < words; i++) {
    printf("%08x", static_cast<unsigned>(data[i]));
  }
  printf("\n");
}

static void transmit(int destination, const char *hex) {
  const size_t words = strlen(hex) / 8;
  std::vector<int> data(words + 1);
  for (size_t i = 0; i < words; i++) {
    data[i] = static_cast<int>(strtoul(std::string(hex + 8 * i, 8).c_str(), NULL, 16));
  }
  MPI_Send(data.data(), static_cast<int>(words), MPI_INTEGER, destination, 0, MPI_COMM_WORLD);
  printf("\nsent\n");
}

int app_main(int argc, char **argv) {
  printf("\nready\n");
  fflush(stdout);
  std::string line;
  while (next_line(line)) {
    int peer = 0, words = 0, at = 0;
    if (sscanf(line.c_str(), "recv %d %d", &peer, &words) == 2) {
      receive(peer, words);
    } else if (sscanf(line.c_str(), "send %d %n", &peer, &at) == 1 && at > 0) {
      transmit(peer, line.c_str() + at);
    } else {
      printf("\nno call: %s\n", line.c_str());
    }
    fflush(stdout);
  }
  return 0;
}
