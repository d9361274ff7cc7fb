// An echo role: it receives a message from rank 0 and sends it back. It has the streams of upstream's wrapper;
// docs/cosim.md has their rules.
#include "hls_stream.h"

#include <cstdint>

struct MPI_Interface {
	uint8_t mpi_call; // 0 SEND_INT, 1 RECV_INT, 2 SEND_FLOAT, 3 RECV_FLOAT
	uint32_t count;   // in words
	uint32_t rank;
};

typedef uint8_t MPI_Feedback; // 1 OK, 2 FAIL: send the lines again

struct Line { // two words
	uint64_t tdata;
	uint8_t tkeep;
	uint8_t tlast;
};

static const uint8_t DATATYPE = 0; // 0: INT, 2: FLOAT
static const uint32_t LINES = 4096; // the longest message has 8192 words

void echo(uint32_t rank, uint32_t size, hls::stream<MPI_Interface> *soMPIif, hls::stream<MPI_Feedback> *siMPIFeB,
	  hls::stream<Line> *soMPI_data, hls::stream<Line> *siMPI_data)
{
	static uint64_t message[LINES];
	uint32_t lines = 0, words = 0;
	Line line;

	(void)rank;
	(void)size;
	MPI_Interface recv = {(uint8_t)(1 + DATATYPE), 2 * LINES, 0};
	soMPIif->write(recv);
	do {
		line = siMPI_data->read();
		message[lines++] = line.tdata;
		words += line.tkeep & 0x80 ? 2 : line.tkeep & 0x08 ? 1 : 0;
	} while (!line.tlast);
	siMPIFeB->read();

	MPI_Interface send = {DATATYPE, words, 0};
	soMPIif->write(send);
	do {
		for (uint32_t i = 0; i < lines; i++) {
			line.tdata = message[i];
			line.tkeep = 0xff;
			line.tlast = i == lines - 1;
			soMPI_data->write(line);
		}
	} while (siMPIFeB->read() != 1);
}

int main()
{
	zrlmpi::role<MPI_Interface, MPI_Feedback, Line> r;
	while (r.next())
		echo(r.rank(), r.size(), &r.soMPIif, &r.siMPIFeB, &r.soMPI_data, &r.siMPI_data);
}
