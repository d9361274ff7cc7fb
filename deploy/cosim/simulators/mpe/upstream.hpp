// Upstream's MPE (mpe2) and MPI wrapper (mpi_wrapperv2) in one program. Each has its own template Axis: the wrapper's
// is compiled with -DAxis=WrapperAxis.
#ifndef UPSTREAM_HPP
#define UPSTREAM_HPP

#include "mpe.hpp"
#define Axis WrapperAxis
#include "ZRLMPI.hpp"
#undef Axis

void mpe_main(stream<NetworkWord> &siTcp_data, stream<NetworkMetaStream> &siTcp_meta, stream<NetworkWord> &soTcp_data,
    stream<NetworkMetaStream> &soTcp_meta, ap_uint<32> *po_rx_ports, ap_uint<32> *own_rank, ap_uint<32> *cluster_size,
    ap_uint<64> *MMIO_out, stream<MPI_Interface> &siMPIif, stream<MPI_Feedback> &soMPIFeB, stream<Axis<64> > &siMPI_data,
    stream<Axis<64> > &soMPI_data);

// The FIFOs between wrapper and MPE, as in upstream's Role.vhdl.
struct Fifos {
  stream<MPI_Interface> call;
  stream<MPI_Feedback> feedback;
  stream<WrapperAxis<64> > to_mpe, to_wrapper; // at the wrapper
  stream<Axis<64> > mpe_in, mpe_out;           // at the MPE
  // A cycle, in which one line moves in each direction.
  void move() {
    if (!to_mpe.empty()) {
      WrapperAxis<64> l = to_mpe.read();
      mpe_in.write(Axis<64>(l.tdata, l.tkeep, l.tlast));
    }
    if (!mpe_out.empty()) {
      Axis<64> l = mpe_out.read();
      WrapperAxis<64> w;
      w.tdata = l.getTData();
      w.tkeep = l.getTKeep();
      w.tlast = l.getTLast();
      to_wrapper.write(w);
    }
  }
};

#endif
