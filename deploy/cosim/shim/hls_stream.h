/* hls::stream for a role in HLS C++ that runs as a program with zrlmpid (docs/cosim.md). The order
 * of -I makes it replace the vendor's header. The streams of a zrlmpi::role block as in hardware:
 * each access takes at least one cycle. The streams of a zrlmpi::network have register slices, which
 * advance in each cycle. Other streams are FIFOs within the program. */
#ifndef ZRLMPI_HLS_STREAM_H
#define ZRLMPI_HLS_STREAM_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "zrlmpi_cosim.h"

namespace zrlmpi {

/* The interface of the only role of the program. */
struct interface {
	zrlmpi_role role{};
	zrlmpi_engine engine{};

	static interface &get() {
		static interface i;
		return i;
	}
	/* Runs one cycle with the signals set in role. Exits at the end of the simulation. */
	int cycle() {
		int moved = zrlmpi_cosim_cycle(&role, &engine);
		if (moved < 0) std::exit(zrlmpi_cosim_status());
		role = zrlmpi_role{};
		return moved;
	}

private:
	interface() {
		zrlmpi_cosim_open();
		engine.reset = 1;
		while (engine.reset) cycle();
	}
};

/* The streams of UDP, or of TCP. */
struct slices {
	struct line {
		uint64_t data;
		uint8_t keep, last;
	};
	std::deque<line> out, in;
	std::deque<uint64_t> out_meta, in_meta;
	uint32_t rx_ports = 0;

	static const size_t SLICES = 2; /* capacity of a stream */

	/* Sets the signals driven by the role, and handles the transfers of a cycle. */
	void drive(zrlmpi_streams_role &r) const {
		r.out_meta_valid = !out_meta.empty();
		if (r.out_meta_valid) r.out_meta = out_meta.front();
		r.out_valid = !out.empty();
		if (r.out_valid) {
			r.out_data = out.front().data;
			r.out_keep = out.front().keep;
			r.out_last = out.front().last;
		}
		r.in_ready = in.size() < SLICES;
		r.in_meta_ready = in_meta.size() < SLICES;
		r.rx_ports = rx_ports;
	}
	void transfer(int moved, const zrlmpi_streams &driven) {
		if (moved & ZRLMPI_OUT_META) out_meta.pop_front();
		if (moved & ZRLMPI_OUT_DATA) out.pop_front();
		if (moved & ZRLMPI_IN_META) in_meta.push_back(driven.in_meta);
		if (moved & ZRLMPI_IN_DATA) in.push_back(line{driven.in_data, driven.in_keep, driven.in_last});
	}
};

/* The interface of the only shell of the program. */
struct shell {
	slices udp, tcp;
	zrlmpi_network now{};

	static shell &get() {
		static shell s;
		return s;
	}
	/* Whether the shell has streams of TCP. Set it before the first use. */
	static bool &with_tcp() {
		static bool with = false;
		return with;
	}
	/* Runs one cycle. Exits at the end of the simulation. */
	void cycle() {
		zrlmpi_network_role r{};
		udp.drive(r.udp);
		tcp.drive(r.tcp);
		zrlmpi_network driven = now; /* transferred at the edge */
		int moved = zrlmpi_network_cycle(&r, &now);
		if (moved < 0) std::exit(zrlmpi_cosim_status());
		udp.transfer(moved, driven.udp);
		tcp.transfer(moved >> 8, driven.tcp);
	}

private:
	shell() {
		with_tcp() ? zrlmpi_network_open_tcp() : zrlmpi_network_open();
		now.reset = 1;
		while (now.reset) cycle();
	}
};

/* A function that runs while a stream waits: the other blocks of the design, and a cycle. */
struct background {
	std::function<void()> run;
	bool running = false;
	static background &get() {
		static background b;
		return b;
	}
	/* Runs the function once. Returns false if no function is set, or if it is already running. */
	bool once() {
		if (!run || running) return false;
		running = true;
		run();
		running = false;
		return true;
	}
};

/* Sets a function to be called repeatedly while the main part of the program waits for a stream. It runs one cycle
 * of the other blocks, such as an MPE, and must not wait for a stream itself. */
inline void meanwhile(std::function<void()> f) { background::get().run = std::move(f); }

/* Calls this function once. Use it between two runs of the main part, which may not wait for any stream. */
inline bool cycle() {
	background::get().once();
	return true;
}

enum kind { FIFO, CALL, OUT, IN, FEEDBACK, NET_OUT_META, NET_OUT, NET_IN, NET_IN_META, TCP_OUT_META, TCP_OUT, TCP_IN, TCP_IN_META };

/* Elements of streams, recognized by the members of upstream's types. Other types are only
 * allowed in FIFOs. */
template <class T> auto drive(const T &v, int) -> decltype((void)v.mpi_call) {
	zrlmpi_role &r = interface::get().role;
	r.call_valid = 1;
	r.mpi_call = (uint8_t)(uint32_t)v.mpi_call;
	r.count = (uint32_t)v.count;
	r.rank = (uint32_t)v.rank;
}
template <class T> auto drive(const T &v, int) -> decltype((void)(uint64_t)v.tdata, (void)v.tkeep) {
	zrlmpi_role &r = interface::get().role;
	r.out_valid = 1;
	r.out_data = (uint64_t)v.tdata;
	r.out_keep = (uint8_t)(uint32_t)v.tkeep;
	r.out_last = (uint32_t)v.tlast != 0;
}
template <class T> void drive(const T &, long) { std::abort(); }

template <class T> auto sample(T &v, int) -> decltype((void)(v.tdata = (uint64_t)0), (void)v.tkeep) {
	const zrlmpi_engine &e = interface::get().engine;
	v.tdata = e.in_data;
	v.tkeep = e.in_keep;
	v.tlast = e.in_last;
}
template <class T> auto sample(T &v, int) -> decltype((void)(v = (uint8_t)0)) { v = interface::get().engine.feedback; }
template <class T> void sample(T &, long) { std::abort(); }

/* The same for lines and metadata of datagrams, by the members of NetworkWord and NetworkMetaStream. */
template <class T> auto send(slices &to, const T &v, int) -> decltype((void)(uint64_t)v.tdata, (void)v.tkeep) {
	to.out.push_back(slices::line{(uint64_t)v.tdata, (uint8_t)(uint32_t)v.tkeep, (uint8_t)((uint32_t)v.tlast != 0)});
}
template <class T> auto send(slices &to, const T &v, int) -> decltype((void)v.tdata.dst_rank) {
	to.out_meta.push_back(zrlmpi_meta((uint8_t)(uint32_t)v.tdata.dst_rank, (uint16_t)(uint32_t)v.tdata.dst_port,
		(uint8_t)(uint32_t)v.tdata.src_rank, (uint16_t)(uint32_t)v.tdata.src_port, (uint16_t)(uint32_t)v.tdata.len));
}
template <class T> void send(slices &, const T &, long) { std::abort(); }

template <class T> auto receive(slices &from, T &v, int) -> decltype((void)(v.tdata = (uint64_t)0), (void)v.tkeep) {
	slices::line l = from.in.front();
	from.in.pop_front();
	v.tdata = l.data;
	v.tkeep = l.keep;
	v.tlast = l.last;
}
template <class T> auto receive(slices &from, T &v, int) -> decltype((void)v.tdata.dst_rank) {
	uint64_t m = from.in_meta.front();
	from.in_meta.pop_front();
	v.tdata.dst_rank = (uint8_t)m;
	v.tdata.dst_port = (uint16_t)(m >> 8);
	v.tdata.src_rank = (uint8_t)(m >> 24);
	v.tdata.src_port = (uint16_t)(m >> 32);
	v.tdata.len = (uint16_t)(m >> 48);
	v.tkeep = 0xff;
	v.tlast = 1;
}
template <class T> void receive(slices &, T &, long) { std::abort(); }

} // namespace zrlmpi

namespace hls {

template <class T, int DEPTH = 0> class stream {
public:
	stream() = default;
	explicit stream(const char *name) : name_(name) {}
	explicit stream(zrlmpi::kind kind) : kind_(kind) {}
	stream(const stream &) = delete;
	stream &operator=(const stream &) = delete;

	/* Capacity of a FIFO with meanwhile: the same as between role and MPE in upstream's templates. */
	static const size_t HELD = 1 << 14;

	void write(const T &v) {
		if (network()) {
			while (full())
				if (!zrlmpi::background::get().once()) zrlmpi::shell::get().cycle();
			zrlmpi::send(slices(), v, 0);
		} else if (kind_ == zrlmpi::FIFO) {
			while (at_bound() && zrlmpi::background::get().once()) {}
			fifo_.push_back(v);
		} else
			while (!offer(v)) {}
	}
	T read() {
		T v;
		if (network()) {
			while (empty())
				if (!zrlmpi::background::get().once()) zrlmpi::shell::get().cycle();
			zrlmpi::receive(slices(), v, 0);
			return v;
		}
		if (kind_ == zrlmpi::FIFO) {
			while (fifo_.empty() && zrlmpi::background::get().once()) {}
			if (fifo_.empty()) {
				std::fprintf(stderr, "read of the empty stream %s: this role would wait forever\n", name_.c_str());
				std::exit(1);
			}
			v = fifo_.front();
			fifo_.pop_front();
			return v;
		}
		while (!accept(v)) {}
		return v;
	}
	bool write_nb(const T &v) {
		if (kind_ != zrlmpi::FIFO && !network()) return offer(v);
		if (full()) return false;
		write(v);
		return true;
	}
	bool read_nb(T &v) {
		if (empty()) return false;
		v = read();
		return true;
	}
	void read(T &v) { v = read(); }
	void operator<<(const T &v) { write(v); }
	void operator>>(T &v) { v = read(); }

	bool empty() const {
		switch (kind_) {
		case zrlmpi::FIFO:
			if (fifo_.empty()) zrlmpi::background::get().once(); /* a role may poll it */
			return fifo_.empty();
		case zrlmpi::IN: return awaits(zrlmpi::interface::get().engine.in_valid);
		case zrlmpi::FEEDBACK: return awaits(zrlmpi::interface::get().engine.feedback_valid);
		case zrlmpi::NET_IN:
		case zrlmpi::TCP_IN: return slices().in.empty();
		case zrlmpi::NET_IN_META:
		case zrlmpi::TCP_IN_META: return slices().in_meta.empty();
		default: return true;
		}
	}
	bool full() const {
		switch (kind_) {
		case zrlmpi::CALL: return awaits(zrlmpi::interface::get().engine.call_ready);
		case zrlmpi::OUT: return awaits(zrlmpi::interface::get().engine.out_ready);
		case zrlmpi::NET_OUT:
		case zrlmpi::TCP_OUT: return slices().out.size() >= zrlmpi::slices::SLICES;
		case zrlmpi::NET_OUT_META:
		case zrlmpi::TCP_OUT_META: return slices().out_meta.size() >= zrlmpi::slices::SLICES;
		case zrlmpi::FIFO:
			if (at_bound()) zrlmpi::background::get().once();
			return at_bound();
		default: return false;
		}
	}
	size_t size() const { return kind_ == zrlmpi::FIFO ? fifo_.size() : !empty(); }

private:
	bool network() const { return kind_ >= zrlmpi::NET_OUT_META; }
	/* The register slices of a network stream. */
	zrlmpi::slices &slices() const { return kind_ >= zrlmpi::TCP_OUT_META ? zrlmpi::shell::get().tcp : zrlmpi::shell::get().udp; }
	/* Whether it is a full FIFO. */
	bool at_bound() const { return zrlmpi::background::get().run && fifo_.size() >= HELD; }

	/* Runs a cycle if a signal of the engine is 0, because a role may poll it. Returns whether it is still 0. */
	static bool awaits(const uint8_t &signal) {
		if (!signal) zrlmpi::interface::get().cycle();
		return !signal;
	}

	/* Runs one cycle in which an element is offered or accepted. */
	bool offer(const T &v) {
		zrlmpi::drive(v, 0);
		return zrlmpi::interface::get().cycle() & (kind_ == zrlmpi::CALL ? ZRLMPI_CALL : ZRLMPI_OUT);
	}
	bool accept(T &v) {
		zrlmpi::interface &i = zrlmpi::interface::get();
		(kind_ == zrlmpi::IN ? i.role.in_ready : i.role.feedback_ready) = 1;
		zrlmpi::sample(v, 0); // transferred at the edge
		return i.cycle() & (kind_ == zrlmpi::IN ? ZRLMPI_IN : ZRLMPI_FEEDBACK);
	}

	std::string name_ = "without a name";
	zrlmpi::kind kind_ = zrlmpi::FIFO;
	std::deque<T> fifo_;
};

} // namespace hls

namespace zrlmpi {

/* The streams of the role, its rank, and the size of its cluster:
 *
 *   zrlmpi::role<MPI_Interface, MPI_Feedback, Axis<64>> r;
 *   while (r.next()) mpi_wrapper(r.rank(), r.size(), &mmio, &r.soMPIif, …);
 */
template <class Call, class Feedback, class Line> struct role {
	hls::stream<Call> soMPIif{CALL};
	hls::stream<Feedback> siMPIFeB{FEEDBACK};
	hls::stream<Line> soMPI_data{OUT};
	hls::stream<Line> siMPI_data{IN};

	uint32_t rank() const { return interface::get().engine.rank; }
	uint32_t size() const { return interface::get().engine.size; }
	/* Runs a cycle between two runs of the role's function. Exits at the end of the simulation. */
	bool next() {
		interface::get().cycle();
		return true;
	}
};

/* The network streams of a role with an MPE, with the types of cFDK's network.hpp:
 *
 *   zrlmpi::network<NetworkWord, NetworkMetaStream> net;
 *   zrlmpi::meanwhile([&] { mpe_main(net.siUdp_data, net.siUdp_meta, …, &ports, …); net.next(ports); });
 *   while (zrlmpi::cycle()) mpi_wrapper(net.rank(), net.size(), …);
 */
template <class Word, class Meta> struct network {
	hls::stream<Word> siUdp_data{NET_IN};
	hls::stream<Meta> siUdp_meta{NET_IN_META};
	hls::stream<Word> soUdp_data{NET_OUT};
	hls::stream<Meta> soUdp_meta{NET_OUT_META};

	uint32_t rank() const { return shell::get().now.rank; }
	uint32_t size() const { return shell::get().now.size; }
	/* Runs a cycle between two runs of the role's functions. Bit n of rx_ports opens port 2718 + n. Exits at the
	 * end of the simulation. */
	bool next(uint32_t rx_ports) {
		shell::get().udp.rx_ports = rx_ports;
		shell::get().cycle();
		return true;
	}
};

/* The same with streams of TCP, which carry chunks of connections. */
template <class Word, class Meta> struct network_tcp : network<Word, Meta> {
	hls::stream<Word> siTcp_data{TCP_IN};
	hls::stream<Meta> siTcp_meta{TCP_IN_META};
	hls::stream<Word> soTcp_data{TCP_OUT};
	hls::stream<Meta> soTcp_meta{TCP_OUT_META};

	network_tcp() { shell::with_tcp() = true; }
	/* Bit n of rx_ports and tcp_ports opens port 2718 + n of UDP and of TCP. */
	bool next(uint32_t rx_ports, uint32_t tcp_ports) {
		shell::get().tcp.rx_ports = tcp_ports;
		return network<Word, Meta>::next(rx_ports);
	}
};

} // namespace zrlmpi

#endif
