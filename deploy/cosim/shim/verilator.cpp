// The clock of a role in Verilog under Verilator, and its interface to zrlmpid.
#include "verilator_main.h"

struct Interface {
	zrlmpi_engine in{};
	zrlmpi_role out{};

	void open(Vrole &) {
		zrlmpi_cosim_open();
		in.reset = 1;
	}
	void clock(Vrole &role, bool high) { role.clk = high; }
	void drive(Vrole &role) {
		role.rst = in.reset;
		role.rank = in.rank;
		role.size = in.size;
		role.soMPIif_tready = in.call_ready;
		role.soMPI_data_tready = in.out_ready;
		role.siMPI_data_tvalid = in.in_valid;
		role.siMPI_data_tdata = in.in_data;
		role.siMPI_data_tkeep = in.in_keep;
		role.siMPI_data_tlast = in.in_last;
		role.siMPIFeB_tvalid = in.feedback_valid;
		role.siMPIFeB_tdata = in.feedback;
	}
	void sample(Vrole &role) {
		out.call_valid = role.soMPIif_tvalid;
		out.mpi_call = uint8_t(role.soMPIif_tdata[0]);
		out.count = role.soMPIif_tdata[0] >> 8 | role.soMPIif_tdata[1] << 24;
		out.rank = role.soMPIif_tdata[1] >> 8 | role.soMPIif_tdata[2] << 24;
		out.out_valid = role.soMPI_data_tvalid;
		out.out_data = role.soMPI_data_tdata;
		out.out_keep = role.soMPI_data_tkeep;
		out.out_last = role.soMPI_data_tlast;
		out.in_ready = role.siMPI_data_tready;
		out.feedback_ready = role.siMPIFeB_tready;
	}
	int cycle() { return zrlmpi_cosim_cycle(&out, &in); }
};

int main(int argc, char **argv) { return simulate<Interface>(argc, argv); }
