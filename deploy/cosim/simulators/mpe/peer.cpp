// Upstream's MPE and MPI wrapper behind the network streams of the shell.
#include "upstream.hpp"
#include <cstdint>

extern char **app_arguments;

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  app_arguments = argv + 1;
  static Fifos fifos;
  static ap_uint<32> ports, rank, size;
  static ap_uint<64> state;
  static ap_uint<16> display;
  static int32_t dram[BOFDRAM_LINE_RESERVATION];
  static zrlmpi::network<NetworkWord, NetworkMetaStream> net;
  zrlmpi::meanwhile([] {
    rank = net.rank();
    size = net.size();
    mpe_main(net.siUdp_data, net.siUdp_meta, net.soUdp_data, net.soUdp_meta, &ports, &rank, &size, &state, fifos.call, fifos.feedback,
        fifos.mpe_in, fifos.mpe_out);
    fifos.move();
    net.next(ports);
  });
  while (zrlmpi::cycle())
    mpi_wrapper(net.rank(), net.size(), &display, &fifos.call, &fifos.feedback, &fifos.to_mpe, &fifos.to_wrapper, dram);
}
