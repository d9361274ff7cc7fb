// A role that sends each datagram back, from a second block of the design: the types of the network streams are those of
// cFDK's network.hpp. It waits for FIFOs, as a role does for its MPE.
#include "hls_stream.h"

#include <cstdint>

struct NetworkWord {
	uint64_t tdata;
	uint8_t tkeep, tlast;
};

struct NetworkMeta {
	uint8_t dst_rank;
	uint16_t dst_port;
	uint8_t src_rank;
	uint16_t src_port;
	uint16_t len;
};

struct NetworkMetaStream {
	NetworkMeta tdata;
	uint8_t tkeep, tlast;
};

int main()
{
	zrlmpi::network<NetworkWord, NetworkMetaStream> net;
	hls::stream<NetworkWord> in("in"), out("out");
	hls::stream<NetworkMeta> from("from"), to("to");

	zrlmpi::meanwhile([&] {
		if (!net.siUdp_meta.empty()) {
			NetworkMetaStream m = net.siUdp_meta.read();
			if (m.tdata.dst_rank == net.rank() && net.size() == 2) from.write(m.tdata);
		}
		if (!net.siUdp_data.empty()) in.write(net.siUdp_data.read());
		if (!to.empty() && !net.soUdp_meta.full()) {
			NetworkMetaStream m = {to.read(), 0xff, 1};
			net.soUdp_meta.write(m);
		}
		if (!out.empty() && !net.soUdp_data.full()) net.soUdp_data.write(out.read());
		net.next(1);
	});
	for (bool with_len = false;; with_len = !with_len) {
		NetworkMeta m = from.read();
		NetworkMeta back = {m.src_rank, m.src_port, m.dst_rank, m.dst_port, (uint16_t)(with_len ? m.len : 0)};
		to.write(back);
		NetworkWord w;
		do {
			w = in.read();
			out.write(w);
		} while (!w.tlast);
	}
}
