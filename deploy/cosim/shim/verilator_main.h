// The clock of a design in Verilog under Verilator, and its waves. An Interface has the signals of one of the
// boundaries to zrlmpid.
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "Vrole.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
typedef VerilatedFstC Trace;
#define WAVES "waves.fst"
#elif VM_TRACE
#include "verilated_vcd_c.h"
typedef VerilatedVcdC Trace;
#define WAVES "waves.vcd"
#endif

#include "zrlmpi_cosim.h"

#if VM_TRACE
// The waves of a design; a time of 10 is a cycle. A file that reaches ZRLMPI_COSIM_WAVES_MB MiB (default 256) is
// renamed to FILE.old, and a new one begins: together they have the last cycles, and at most about twice this size.
struct Waves {
	Trace trace;
	std::string file;
	uint64_t limit;

	explicit Waves(Vrole &role) {
		const char *name = std::getenv("ZRLMPI_COSIM_WAVES"), *mib = std::getenv("ZRLMPI_COSIM_WAVES_MB");
		file = name ? name : WAVES;
		limit = (mib ? std::strtoull(mib, nullptr, 10) : 256) << 20;
		role.trace(&trace, 99);
		trace.open(file.c_str());
		std::printf("waves: %s, the last %llu MiB at least\n", file.c_str(), (unsigned long long)(limit >> 20));
		std::fflush(stdout);
	}
	// Writes buffered waves, and begins another file if this one is too long. Call it from time to time.
	void keep(uint64_t cycle) {
		struct stat s;
		trace.flush();
		if (stat(file.c_str(), &s) != 0 || uint64_t(s.st_size) < limit) return;
		trace.close();
		std::rename(file.c_str(), (file + ".old").c_str());
		trace.open(file.c_str());
		std::printf("waves: %s begins anew after cycle %llu, and the cycles before are in %s.old\n", file.c_str(), (unsigned long long)cycle, file.c_str());
		std::fflush(stdout);
	}
	void dump(uint64_t time) { trace.dump(time); }
};
#endif

// Runs the simulation to its end, and returns the exit status of the program.
template <class Interface> int simulate(int argc, char **argv) {
	VerilatedContext context;
	context.commandArgs(argc, argv);
#if VM_TRACE
	context.traceEverOn(true);
#endif
	auto role = std::make_unique<Vrole>(&context);
#if VM_TRACE
	Waves waves(*role);
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
		if (cycle % 16384 == 0) waves.keep(cycle);
#endif
		if (io.cycle() < 0) break;
	}
	role->final();
#if VM_TRACE
	waves.trace.close();
#endif
	return zrlmpi_cosim_status();
}
