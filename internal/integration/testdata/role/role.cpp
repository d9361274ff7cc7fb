// Runs what upstream's compiler has generated for FPGAs (app_hw.cpp) as a stand-in's
// program, kernel exec:PROGRAM. Its calls go over the MPE interface on standard input
// and output; what it prints goes to standard error.
#include <unistd.h>

#include "app_hw.hpp"

static FILE *calls = NULL; // to the engine; feedback comes on stdin

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

// The stand-in closes our standard input when it ends us.
static void take(void *to, size_t bytes) {
  if (bytes > 0 && fread(to, bytes, 1, stdin) != 1) {
    exit(0);
  }
}

// perform makes one call, and takes what comes back: a message of exactly so many words.
static void perform(uint8_t call, int count, int rank, const int *out, int *in) {
  const uint32_t head[2] = {static_cast<uint32_t>(count), static_cast<uint32_t>(rank)};
  fputc(call, calls);
  fwrite(head, sizeof head, 1, calls); // least significant byte first, as on this machine
  if (out != NULL) {
    fwrite(out, sizeof *out, count, calls);
  }
  if (fflush(calls) != 0) {
    fail("the engine is gone");
  }
  uint8_t status = 0;
  uint32_t words = 0;
  take(&status, sizeof status);
  take(&words, sizeof words);
  if (status != ZRLMPI_FEEDBACK_OK) {
    char *text = static_cast<char *>(calloc(words + 1, sizeof words));
    take(text, words * sizeof words);
    fail(text);
  }
  if (words != (in != NULL ? static_cast<uint32_t>(count) : 0)) {
    fprintf(stderr, "%u words, where %d were asked for\n", words, count);
    exit(1);
  }
  take(in, words * sizeof words);
}

void MPI_Send(Calls, Feedback, Data, int *data, int count, MPI_Datatype type, int destination, int, MPI_Comm) {
  perform(type == MPI_FLOAT ? MPI_SEND_FLOAT : MPI_SEND_INT, count, destination, data, NULL);
}

void MPI_Recv(Calls, Feedback, Data, int *data, int count, MPI_Datatype type, int source, int, MPI_Comm, MPI_Status *) {
  perform(type == MPI_FLOAT ? MPI_RECV_FLOAT : MPI_RECV_INT, count, source, NULL, data);
}

void MPI_Init() {}
void MPI_Init(void *, void *) {}
void MPI_Finalize() {}
void MPI_Comm_rank(MPI_Comm, int *rank) { *rank = atoi(getenv("ZRLMPI_RANK")); }
void my_free(void *) {}
void my_exit(int) {}
void my_perror(const char *) {}

// What the program allocates are parameters of its main function: arrays in DRAM.
template <class Result, class... Words>
static void run(Result (*app)(Calls, Feedback, Data, Data, Words *...)) {
  const size_t dram = 1 << 22;
  app(NULL, NULL, NULL, NULL, static_cast<Words *>(calloc(dram, sizeof(Words)))...);
}

int main() {
  calls = fdopen(dup(STDOUT_FILENO), "wb");
  if (calls == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    fail("no standard output");
  }
  run(app_main);
  return 0;
}
