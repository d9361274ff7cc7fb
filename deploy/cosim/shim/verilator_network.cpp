// The clock of a role in Verilog under Verilator that includes an MPE, and its interface to zrlmpid, which is the
// shell. The top module is "role", and has those ports of Role_Themisto that are named here; it has the ports of TCP if
// it has poROL_Nrc_Tcp_Rx_ports.
#include "verilator_main.h"

// The streams of TCP. The functions with an argument of type long are called for a role without them.
template <class Role> auto open_network(Role &role, int) -> decltype((void)role.poROL_Nrc_Tcp_Rx_ports) {
	zrlmpi_network_open_tcp();
}
template <class Role> void open_network(Role &, long) { zrlmpi_network_open(); }

template <class Role> auto drive_tcp(const zrlmpi_streams &in, Role &role, int) -> decltype((void)role.poROL_Nrc_Tcp_Rx_ports) {
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
template <class Role> void drive_tcp(const zrlmpi_streams &, Role &, long) {}

template <class Role> auto sample_tcp(zrlmpi_streams_role &out, Role &role, int) -> decltype((void)role.poROL_Nrc_Tcp_Rx_ports) {
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
template <class Role> void sample_tcp(zrlmpi_streams_role &, Role &, long) {}

struct Interface {
	zrlmpi_network in{};
	zrlmpi_network_role out{};

	void open(Vrole &role) {
		open_network(role, 0);
		in.reset = 1;
	}
	void clock(Vrole &role, bool high) { role.piSHL_156_25Clk = high; }
	void drive(Vrole &role) {
		const zrlmpi_streams &udp = in.udp;
		role.piSHL_156_25Rst = in.reset;
		role.piMMIO_Ly7_Rst = in.reset;
		role.piMMIO_Ly7_En = !in.reset;
		role.piFMC_ROLE_rank = in.rank;
		role.piFMC_ROLE_size = in.size;
		role.soROLE_Nrc_Udp_Meta_TREADY = udp.out_meta_ready;
		role.soNRC_Udp_Data_tready = udp.out_ready;
		role.siNRC_Udp_Data_tvalid = udp.in_valid;
		role.siNRC_Udp_Data_tdata = udp.in_data;
		role.siNRC_Udp_Data_tkeep = udp.in_keep;
		role.siNRC_Udp_Data_tlast = udp.in_last;
		role.siNRC_Role_Udp_Meta_TVALID = udp.in_meta_valid;
		role.siNRC_Role_Udp_Meta_TDATA = udp.in_meta;
		role.siNRC_Role_Udp_Meta_TKEEP = 0xff;
		role.siNRC_Role_Udp_Meta_TLAST = 1;
		drive_tcp(in.tcp, role, 0);
	}
	void sample(Vrole &role) {
		zrlmpi_streams_role &udp = out.udp;
		udp.out_meta_valid = role.soROLE_Nrc_Udp_Meta_TVALID;
		udp.out_meta = role.soROLE_Nrc_Udp_Meta_TDATA;
		udp.out_valid = role.soNRC_Udp_Data_tvalid;
		udp.out_data = role.soNRC_Udp_Data_tdata;
		udp.out_keep = role.soNRC_Udp_Data_tkeep;
		udp.out_last = role.soNRC_Udp_Data_tlast;
		udp.in_ready = role.siNRC_Udp_Data_tready;
		udp.in_meta_ready = role.siNRC_Role_Udp_Meta_TREADY;
		udp.rx_ports = role.poROL_Nrc_Udp_Rx_ports;
		sample_tcp(out.tcp, role, 0);
	}
	int cycle() { return zrlmpi_network_cycle(&out, &in); }
};

int main(int argc, char **argv) { return simulate<Interface>(argc, argv); }
