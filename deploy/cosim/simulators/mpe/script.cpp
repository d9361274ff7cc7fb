// Upstream's MPE and MPI wrapper, controlled by lines on stdin:
//
//   send PEER TYPE -WORDS         a call of the wrapper; WORDS and BYTES are in hex
//   recv PEER TYPE COUNT
//   datagram FROM BYTES
//   cycles N
//
// Each line is answered when nothing has moved for a while, or after the cycles: by "to PEER BYTES" for each datagram,
// "sent" or "received -WORDS OVERRUN" when a call has returned, and "state NUMBER CYCLE" at the end.
#include "upstream.hpp"
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

extern uint32_t words[]; // the buffer of the wrapper for one word or none
static const int WORDS = 64;   // its length in the source
static const int LONGEST = 1 << 16;
static const int UNTOUCHED = 0x5a5a5a5a;
static const int QUIET = 300;

static stream<NetworkWord> in, out;
static stream<NetworkMetaStream> in_meta, out_meta;
static Fifos fifos;
static ap_uint<32> ports, rank, size;
static ap_uint<64> mmio;
static unsigned long long now; // cycles
static int quiet;              // number of cycles in which nothing has moved

static struct {
  bool recv;
  int peer, type, count;
  int data[LONGEST];
} job;
static stream<bool> jobs;

static void print(unsigned char b) {
  static const char *digits = "0123456789abcdef";
  std::cout << digits[b >> 4] << digits[b & 15];
}

static std::vector<unsigned char> bytes(const std::string &hex) {
  std::vector<unsigned char> b;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) b.push_back((unsigned char) std::stoi(hex.substr(i, 2), nullptr, 16));
  return b;
}

// The program in the FPGA.
static void app() {
  jobs.read();
  MPI_Status status;
  if (!job.recv) {
    MPI_Send(&fifos.call, &fifos.feedback, &fifos.to_mpe, job.data, job.count, job.type, job.peer, 0, 0);
    std::cout << "sent\n";
    return;
  }
  MPI_Recv(&fifos.call, &fifos.feedback, &fifos.to_wrapper, job.data, job.count, job.type, job.peer, 0, 0, &status);
  std::cout << "received -";
  for (int i = 0; i < 4 * job.count; i++) print(job.data[i / 4] >> 8 * (i % 4));
  // The wrapper has a separate buffer for one word or none.
  std::cout << " " << (job.count > 1 && (job.data[job.count] != UNTOUCHED || job.data[job.count + 1] != UNTOUCHED)) << "\n";
}

static void call(std::istringstream &args) {
  args >> job.peer >> job.type;
  for (int i = 0; i < LONGEST; i++) job.data[i] = job.recv ? UNTOUCHED : 0;
  for (int i = 0; i < WORDS; i++) words[i] = 0;
  if (job.recv) {
    args >> job.count;
    for (int i = 0; i < job.count; i++) job.data[i] = 0;
  } else {
    std::string text;
    args >> text;
    std::vector<unsigned char> b = bytes(text.substr(1));
    job.count = (int) b.size() / 4;
    for (size_t i = 0; i < b.size(); i++) job.data[i / 4] |= b[i] << 8 * (i % 4);
  }
  jobs.write(true);
}

static void arrive(std::istringstream &args) {
  int from;
  std::string text;
  args >> from >> text;
  std::vector<unsigned char> b = bytes(text);
  in_meta.write(NetworkMetaStream(NetworkMeta((unsigned) rank, ZRLMPI_DEFAULT_PORT, from, ZRLMPI_DEFAULT_PORT, b.size())));
  for (size_t i = 0; i < b.size(); i += 8) {
    uint64_t w = 0;
    size_t n = std::min<size_t>(8, b.size() - i);
    for (size_t k = 0; k < n; k++) w |= (uint64_t) b[i + k] << 8 * k;
    in.write(NetworkWord(w, (1 << n) - 1, i + 8 >= b.size()));
  }
}

static void mpe() {
  static std::vector<unsigned char> datagram;
  now++;
  mpe_main(in, in_meta, out, out_meta, &ports, &rank, &size, &mmio, fifos.call, fifos.feedback, fifos.mpe_in, fifos.mpe_out);
  const bool moves = !in.empty() || !out.empty() || !fifos.mpe_in.empty() || !fifos.mpe_out.empty() || !fifos.to_mpe.empty();
  quiet = moves ? 0 : quiet + 1;
  fifos.move();
  while (!out.empty()) {
    NetworkWord w = out.read();
    for (int i = 0; i < 8; i++)
      if ((unsigned) w.tkeep >> i & 1) datagram.push_back((unsigned char) ((uint64_t) w.tdata >> 8 * i));
    if (w.tlast != 1) continue;
    std::cout << "to " << (unsigned) out_meta.read().tdata.dst_rank << " ";
    for (unsigned char b : datagram) print(b);
    std::cout << "\n";
    datagram.clear();
  }
}

// A cycle, preceded and followed by commands on stdin.
static void cycle() {
  static unsigned long long until;
  static bool busy;
  if (!busy) {
    std::string line, what;
    if (!std::getline(std::cin, line)) exit(0);
    std::istringstream args(line);
    args >> what;
    until = 0;
    if (what == "cycles") {
      args >> until;
      until += now;
    } else if (what == "datagram") {
      arrive(args);
    } else {
      job.recv = what == "recv";
      call(args);
    }
    quiet = 0;
    busy = true;
  }
  mpe();
  if (until ? now >= until : quiet >= QUIET) {
    std::cout << "state " << (int) (mmio & 0xff) << " " << now << std::endl;
    busy = false;
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  rank = atoi(argv[1]);
  size = atoi(argv[2]);
  zrlmpi::meanwhile(cycle);
  while (zrlmpi::cycle()) app();
}
