// The clock of a role in Verilog under Verilator with an MPE of its own, and its interface to zrlmpid, which is the
// shell. The top module is "role", and has those ports of Role_Themisto that are named here.
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
	zrlmpi_network_open();
	zrlmpi_network in{};
	zrlmpi_network_role out{};
	in.reset = 1;
	for (uint64_t cycle = 0; !context.gotFinish(); cycle++) {
		role->piSHL_156_25Clk = 0;
		role->piSHL_156_25Rst = in.reset;
		role->piMMIO_Ly7_Rst = in.reset;
		role->piMMIO_Ly7_En = !in.reset;
		role->piFMC_ROLE_rank = in.rank;
		role->piFMC_ROLE_size = in.size;
		role->soROLE_Nrc_Udp_Meta_TREADY = in.out_meta_ready;
		role->soNRC_Udp_Data_tready = in.out_ready;
		role->siNRC_Udp_Data_tvalid = in.in_valid;
		role->siNRC_Udp_Data_tdata = in.in_data;
		role->siNRC_Udp_Data_tkeep = in.in_keep;
		role->siNRC_Udp_Data_tlast = in.in_last;
		role->siNRC_Role_Udp_Meta_TVALID = in.in_meta_valid;
		role->siNRC_Role_Udp_Meta_TDATA = in.in_meta;
		role->siNRC_Role_Udp_Meta_TKEEP = 0xff;
		role->siNRC_Role_Udp_Meta_TLAST = 1;
		role->eval();
#if VM_TRACE
		waves.dump(10 * cycle);
#endif
		out.out_meta_valid = role->soROLE_Nrc_Udp_Meta_TVALID;
		out.out_meta = role->soROLE_Nrc_Udp_Meta_TDATA;
		out.out_valid = role->soNRC_Udp_Data_tvalid;
		out.out_data = role->soNRC_Udp_Data_tdata;
		out.out_keep = role->soNRC_Udp_Data_tkeep;
		out.out_last = role->soNRC_Udp_Data_tlast;
		out.in_ready = role->siNRC_Udp_Data_tready;
		out.in_meta_ready = role->siNRC_Role_Udp_Meta_TREADY;
		out.rx_ports = role->poROL_Nrc_Udp_Rx_ports;
		role->piSHL_156_25Clk = 1;
		role->eval();
#if VM_TRACE
		waves.dump(10 * cycle + 5);
		if (cycle % 1024 == 0) waves.flush();
#endif
		if (zrlmpi_network_cycle(&out, &in) < 0) break;
	}
	role->final();
	return zrlmpi_cosim_status();
}
