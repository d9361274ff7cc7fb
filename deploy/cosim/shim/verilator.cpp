// The clock of a role in Verilog under Verilator, and its interface to zrlmpid.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "Vrole.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

#include "zrlmpi_cosim.h"

int main(int argc, char **argv) {
	VerilatedContext context;
	context.commandArgs(argc, argv);
#if VM_TRACE
	context.traceEverOn(true);
#endif
	auto role = std::make_unique<Vrole>(&context);
#if VM_TRACE
	// A time of 10 is a cycle.
	VerilatedVcdC waves;
	role->trace(&waves, 99);
	const char *file = std::getenv("ZRLMPI_COSIM_WAVES");
	waves.open(file ? file : "waves.vcd");
#endif
	zrlmpi_cosim_open();
	zrlmpi_engine in{};
	zrlmpi_role out{};
	in.reset = 1;
	for (uint64_t cycle = 0; !context.gotFinish(); cycle++) {
		role->clk = 0;
		role->rst = in.reset;
		role->rank = in.rank;
		role->size = in.size;
		role->soMPIif_tready = in.call_ready;
		role->soMPI_data_tready = in.out_ready;
		role->siMPI_data_tvalid = in.in_valid;
		role->siMPI_data_tdata = in.in_data;
		role->siMPI_data_tkeep = in.in_keep;
		role->siMPI_data_tlast = in.in_last;
		role->siMPIFeB_tvalid = in.feedback_valid;
		role->siMPIFeB_tdata = in.feedback;
		role->eval();
#if VM_TRACE
		waves.dump(10 * cycle);
#endif
		out.call_valid = role->soMPIif_tvalid;
		out.mpi_call = uint8_t(role->soMPIif_tdata[0]);
		out.count = role->soMPIif_tdata[0] >> 8 | role->soMPIif_tdata[1] << 24;
		out.rank = role->soMPIif_tdata[1] >> 8 | role->soMPIif_tdata[2] << 24;
		out.out_valid = role->soMPI_data_tvalid;
		out.out_data = role->soMPI_data_tdata;
		out.out_keep = role->soMPI_data_tkeep;
		out.out_last = role->soMPI_data_tlast;
		out.in_ready = role->siMPI_data_tready;
		out.feedback_ready = role->siMPIFeB_tready;
		role->clk = 1;
		role->eval();
#if VM_TRACE
		waves.dump(10 * cycle + 5);
		if (cycle % 1024 == 0) waves.flush();
#endif
		if (zrlmpi_cosim_cycle(&out, &in) < 0) break;
	}
	role->final();
	return zrlmpi_cosim_status();
}
