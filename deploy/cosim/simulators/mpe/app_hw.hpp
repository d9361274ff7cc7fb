// The program in the FPGA, in place of the output of upstream's compiler.
#ifndef APP_HW_HPP
#define APP_HW_HPP

#include "ZRLMPI.hpp"

int app_main(stream<MPI_Interface> *soMPIif, stream<MPI_Feedback> *siMPIFeB, stream<Axis<64> > *soMPI_data, stream<Axis<64> > *siMPI_data);

#endif
