// An echo role that breaks a rule of its streams from its first message on: rule N after a message of N lines. After 9 lines
// it ends, and after 10 its next receive is of 4 words.
#include "hls_stream.h"

#include <cstdint>

struct Call {
	uint8_t mpi_call;
	uint32_t count;
	uint32_t rank;
};

struct Line {
	uint64_t tdata;
	uint8_t tkeep, tlast;
};

typedef zrlmpi::role<Call, uint8_t, Line> Role;

static uint32_t rule;

static void call(Role &r, Call c)
{
	switch (rule) {
	case 6:
		if (r.soMPIif.write_nb(c)) return;
		r.next();
		break;
	case 7:
		while (!r.soMPIif.write_nb(c)) c.count ^= 1;
		return;
	case 8:
		while (r.soMPIif.full()) {}
		break;
	}
	r.soMPIif.write(c);
}

static void send(Role &r, Line l)
{
	switch (rule) {
	case 1:
		if (r.soMPI_data.write_nb(l)) return;
		r.next();
		break;
	case 2:
		while (!r.soMPI_data.write_nb(l)) l.tdata ^= 1;
		return;
	case 3:
		while (!r.soMPI_data.write_nb(l)) l.tkeep ^= 0x80;
		return;
	case 4:
		while (!r.soMPI_data.write_nb(l)) l.tlast ^= 1;
		return;
	case 5:
		while (r.soMPI_data.full()) {}
		break;
	}
	r.soMPI_data.write(l);
}

int main()
{
	static Line message[4096];
	Role r;
	while (r.next()) {
		uint32_t lines = 0, words = 0;
		call(r, Call{1, rule == 10 ? 4U : 8192U, 0});
		do {
			message[lines] = r.siMPI_data.read();
			words += message[lines].tkeep & 0x80 ? 2 : 1;
		} while (!message[lines++].tlast);
		r.siMPIFeB.read();
		rule = lines;
		if (rule == 9) return 3;
		call(r, Call{0, words, 0});
		for (uint32_t i = 0; i < lines; i++)
			send(r, Line{message[i].tdata, 0xff, message[i].tlast});
		r.siMPIFeB.read();
	}
}
