// A program for upstream's CPU library (ZRLMPI.hpp), to be built with it like
// any program of its users. Rank 0 sends messages to rank 1 and checks what comes
// back; rank 1 sends back what it receives. Its one argument, which is all that
// the library passes on, says how many:
//
//   347 or 347f        347 words of MPI_INTEGER or MPI_FLOAT, three times
//   4:1000,1388:500    messages of 4 bytes, 1000 of them timed, and so on: what
//                      bench/parse.go reads is printed
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/resource.h>
#include <vector>

#include "ZRLMPI.hpp"

static const int WARMUP = 20; // as in bench/step.go
static int rank = 0;

static void pong(const int *data, int words, MPI_Datatype type) {
  MPI_Send(const_cast<int *>(data), words, type, 1 - rank, 0, MPI_COMM_WORLD);
}

static void ping(int *data, int words, MPI_Datatype type) {
  MPI_Status status;
  MPI_Recv(data, words, type, 1 - rank, 0, MPI_COMM_WORLD, &status);
}

static void check(int round, const std::vector<int> &in, const std::vector<int> &out) {
  if (in != out) {
    printf("round %d: other words came back\n", round);
    fflush(stdout);
    exit(1);
  }
}

static void three_times(const char *arg) {
  const int words = atoi(arg);
  const MPI_Datatype type = strchr(arg, 'f') ? MPI_FLOAT : MPI_INTEGER;
  std::vector<int> out(words + 1), in(words + 1);
  for (int round = 0; round < 3; round++) {
    if (rank == 1) {
      ping(in.data(), words, type);
      pong(in.data(), words, type);
      continue;
    }
    for (int i = 0; i < words; i++) {
      out[i] = static_cast<int>(0x9e3779b9u * (i + 1) + round);
    }
    pong(out.data(), words, type);
    ping(in.data(), words, type);
    check(round, in, out);
  }
  printf("pingpong of %s words: ok\n", arg);
}

// now is a time in microseconds.
static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

// used is the time in microseconds that the process has used of a processor.
static double used() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

// timed is a step of a benchmark. Only rank 0 measures, and so counts what both
// ranks have verified: rank 1 sends back what it got.
static long long timed(int bytes, int iterations) {
  const int words = bytes / 4;
  std::vector<int> out(words), in(words);
  std::vector<double> half;
  for (int i = 0; i < words; i++) {
    out[i] = static_cast<int>(0x9e3779b9u * (i + 1));
  }
  double cpu = used();
  for (int i = -WARMUP; i < iterations; i++) {
    if (rank == 1) {
      ping(in.data(), words, MPI_INTEGER);
      pong(in.data(), words, MPI_INTEGER);
      continue;
    }
    out[0] = out[words - 1] = i;
    double start = now();
    pong(out.data(), words, MPI_INTEGER);
    ping(in.data(), words, MPI_INTEGER);
    if (i >= 0) {
      half.push_back((now() - start) / 2);
    }
    check(i, in, out);
  }
  cpu = used() - cpu;
  const long long messages = 2LL * (WARMUP + iterations);
  if (rank == 0) {
    std::sort(half.begin(), half.end());
    const size_t n = half.size();
    // Rank 1 does the same, and so uses about as much.
    printf("\npoint %d p50 %.4f p99 %.4f p999 %.4f least %.4f cpu %.4f\n", bytes, half[n / 2],
           half[n * 99 / 100], half[n * 999 / 1000], half[0], 2 * cpu / messages);
    fflush(stdout);
  }
  return messages;
}

static void benchmark(const char *arg) {
  long long verified = 0;
  int bytes = 0, iterations = 0, length = 0;
  while (sscanf(arg, "%d:%d%n", &bytes, &iterations, &length) == 2 && bytes >= 4 && bytes % 4 == 0 && iterations > 0) {
    verified += timed(bytes, iterations);
    arg += length;
    if (*arg != ',') {
      break;
    }
    arg++;
  }
  if (*arg != 0) {
    printf("%s: a step is BYTES:ITERATIONS\n", arg);
    exit(1);
  }
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  if (rank == 0) {
    printf("\nmemory %ld\nverified %lld\n", u.ru_maxrss, verified);
  }
}

int app_main(int argc, char **argv) {
  const char *arg = argc > 1 ? argv[1] : "1";
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strchr(arg, ':') != NULL) {
    benchmark(arg);
  } else {
    three_times(arg);
  }
  fflush(stdout);
  return 0;
}
