// The clock of a design in Verilog under Verilator, and its waves. An Interface has what differs: the signals at a boundary to
// zrlmpid.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "Vrole.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

#include "zrlmpi_cosim.h"

// Runs the simulation to its end, and returns the status of the program.
template <class Interface> int simulate(int argc, char **argv) {
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
	Interface io;
	io.open(*role);
	for (uint64_t cycle = 0; !context.gotFinish(); cycle++) {
		io.clock(*role, false);
		io.drive(*role);
		role->eval();
#if VM_TRACE
		waves.dump(10 * cycle);
#endif
		io.sample(*role);
		io.clock(*role, true);
		role->eval();
#if VM_TRACE
		waves.dump(10 * cycle + 5);
		if (cycle % 1024 == 0) waves.flush();
#endif
		if (io.cycle() < 0) break;
	}
	role->final();
	return zrlmpi_cosim_status();
}
