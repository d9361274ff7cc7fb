// A role that sends each chunk of a TCP connection back over it. It opens port 2720.
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
	zrlmpi::network_tcp<NetworkWord, NetworkMetaStream> net;
	zrlmpi::meanwhile([&] { net.next(0, 4); });
	for (;;) {
		NetworkMeta m = net.siTcp_meta.read().tdata;
		NetworkMetaStream back = {{m.src_rank, m.src_port, m.dst_rank, m.dst_port, 0}, 0xff, 1};
		net.soTcp_meta.write(back);
		NetworkWord w;
		do {
			w = net.siTcp_data.read();
			net.soTcp_data.write(w);
		} while (!w.tlast);
	}
}
