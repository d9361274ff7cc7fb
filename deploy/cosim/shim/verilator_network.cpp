// The clock of a role in Verilog under Verilator with an MPE of its own, and its interface to zrlmpid, which is the
// shell. The top module is "role", and has those ports of Role_Themisto that are named here; those of TCP if it has
// poROL_Nrc_Tcp_Rx_ports.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "Vrole.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

#include "zrlmpi_cosim.h"

// The streams of TCP, of a role that has them; for others, the functions with long are called.
template <class Role> auto open_network(Role &role, int) -> decltype((void)role.poROL_Nrc_Tcp_Rx_ports) {
	zrlmpi_network_open_tcp();
}
template <class Role> void open_network(Role &, long) { zrlmpi_network_open(); }

template <class Role> auto drive_tcp(const zrlmpi_tcp &in, Role &role, int) -> decltype((void)role.poROL_Nrc_Tcp_Rx_ports) {
	role.soROLE_Nrc_Tcp_Meta_TREADY = in.out_meta_ready;
	role.soNRC_Tcp_Data_tready = in.out_ready;
	role.siNRC_Tcp_Data_tvalid = in.in_valid;
	role.siNRC_Tcp_Data_tdata = in.in_data;
	role.siNRC_Tcp_Data_tkeep = in.in_keep;
	role.siNRC_Tcp_Data_tlast = in.in_last;
	role.siNRC_Role_Tcp_Meta_TVALID = in.in_meta_valid;
	role.siNRC_Role_Tcp_Meta_TDATA = in.in_meta;
	role.siNRC_Role_Tcp_Meta_TKEEP = 0xff;
	role.siNRC_Role_Tcp_Meta_TLAST = 1;
}
template <class Role> void drive_tcp(const zrlmpi_tcp &, Role &, long) {}

template <class Role> auto sample_tcp(zrlmpi_tcp_role &out, Role &role, int) -> decltype((void)role.poROL_Nrc_Tcp_Rx_ports) {
	out.out_meta_valid = role.soROLE_Nrc_Tcp_Meta_TVALID;
	out.out_meta = role.soROLE_Nrc_Tcp_Meta_TDATA;
	out.out_valid = role.soNRC_Tcp_Data_tvalid;
	out.out_data = role.soNRC_Tcp_Data_tdata;
	out.out_keep = role.soNRC_Tcp_Data_tkeep;
	out.out_last = role.soNRC_Tcp_Data_tlast;
	out.in_ready = role.siNRC_Tcp_Data_tready;
	out.in_meta_ready = role.siNRC_Role_Tcp_Meta_TREADY;
	out.rx_ports = role.poROL_Nrc_Tcp_Rx_ports;
}
template <class Role> void sample_tcp(zrlmpi_tcp_role &, Role &, long) {}

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
	open_network(*role, 0);
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
		drive_tcp(in.tcp, *role, 0);
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
		sample_tcp(out.tcp, *role, 0);
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
