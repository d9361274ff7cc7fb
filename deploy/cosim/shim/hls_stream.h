/* hls::stream for a role in HLS C++ that runs as a program behind zrlmpid (docs/cosim.md). It
 * takes the place of the vendor's header in the order of -I. The streams of a zrlmpi::role
 * block, as in hardware: each access takes at least one cycle. Other streams are FIFOs
 * within the program. */
#ifndef ZRLMPI_HLS_STREAM_H
#define ZRLMPI_HLS_STREAM_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "zrlmpi_cosim.h"

namespace zrlmpi {

/* The interface of the one role of the program. */
struct interface {
	zrlmpi_role role{};
	zrlmpi_engine engine{};

	static interface &get() {
		static interface i;
		return i;
	}
	/* One cycle, in which the role drives what is set. Ends the program with the simulation. */
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

enum kind { FIFO, CALL, OUT, IN, FEEDBACK };

/* Elements of streams, by the members that upstream's types have. What has none of them is
 * only in FIFOs. */
template <class T> auto drive(const T &v, int) -> decltype((void)v.mpi_call) {
	zrlmpi_role &r = interface::get().role;
	r.call_valid = 1;
	r.mpi_call = (uint8_t)(uint32_t)v.mpi_call;
	r.count = (uint32_t)v.count;
	r.rank = (uint32_t)v.rank;
}
template <class T> auto drive(const T &v, int) -> decltype((void)v.tkeep) {
	zrlmpi_role &r = interface::get().role;
	r.out_valid = 1;
	r.out_data = (uint64_t)v.tdata;
	r.out_keep = (uint8_t)(uint32_t)v.tkeep;
	r.out_last = (uint32_t)v.tlast != 0;
}
template <class T> void drive(const T &, long) { std::abort(); }

template <class T> auto sample(T &v, int) -> decltype((void)v.tkeep) {
	const zrlmpi_engine &e = interface::get().engine;
	v.tdata = e.in_data;
	v.tkeep = e.in_keep;
	v.tlast = e.in_last;
}
template <class T> auto sample(T &v, int) -> decltype((void)(v = (uint8_t)0)) { v = interface::get().engine.feedback; }
template <class T> void sample(T &, long) { std::abort(); }

} // namespace zrlmpi

namespace hls {

template <class T, int DEPTH = 0> class stream {
public:
	stream() = default;
	explicit stream(const char *name) : name_(name) {}
	explicit stream(zrlmpi::kind kind) : kind_(kind) {}
	stream(const stream &) = delete;
	stream &operator=(const stream &) = delete;

	void write(const T &v) {
		if (kind_ == zrlmpi::FIFO)
			fifo_.push_back(v);
		else
			while (!offer(v)) {}
	}
	T read() {
		T v;
		if (kind_ == zrlmpi::FIFO) {
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
		if (kind_ == zrlmpi::FIFO) {
			fifo_.push_back(v);
			return true;
		}
		return offer(v);
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
		const zrlmpi_engine *e = kind_ == zrlmpi::FIFO ? nullptr : &zrlmpi::interface::get().engine;
		switch (kind_) {
		case zrlmpi::FIFO: return fifo_.empty();
		case zrlmpi::IN: return !e->in_valid;
		case zrlmpi::FEEDBACK: return !e->feedback_valid;
		default: return true;
		}
	}
	bool full() const {
		switch (kind_) {
		case zrlmpi::CALL: return !zrlmpi::interface::get().engine.call_ready;
		case zrlmpi::OUT: return !zrlmpi::interface::get().engine.out_ready;
		default: return false;
		}
	}
	size_t size() const { return kind_ == zrlmpi::FIFO ? fifo_.size() : !empty(); }

private:
	/* One cycle in which an element is offered, or accepted. */
	bool offer(const T &v) {
		zrlmpi::drive(v, 0);
		return zrlmpi::interface::get().cycle() & (kind_ == zrlmpi::CALL ? ZRLMPI_CALL : ZRLMPI_OUT);
	}
	bool accept(T &v) {
		zrlmpi::interface &i = zrlmpi::interface::get();
		(kind_ == zrlmpi::IN ? i.role.in_ready : i.role.feedback_ready) = 1;
		zrlmpi::sample(v, 0); // what is driven now is transferred at the edge
		return i.cycle() & (kind_ == zrlmpi::IN ? ZRLMPI_IN : ZRLMPI_FEEDBACK);
	}

	std::string name_ = "without a name";
	zrlmpi::kind kind_ = zrlmpi::FIFO;
	std::deque<T> fifo_;
};

} // namespace hls

namespace zrlmpi {

/* The streams of the role, and what it knows of its cluster:
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
	/* A cycle between two runs of the role's function. The program ends with the simulation. */
	bool next() {
		interface::get().cycle();
		return true;
	}
};

} // namespace zrlmpi

#endif
