/* Shared parts of the raw programs over UDP. */
#include "raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { RAW_MAX_DATAGRAM = 65507 };

static int raw_socket[2];
static struct sockaddr_in raw_address[2];

/* raw_open binds a socket for each process to a free port. If RAW_SOCKETS is set, both sockets are inherited and bound
 * instead, and RAW_SOCKETS is the first descriptor of the two. */
static void raw_open(void) {
	const char *inherited = getenv("RAW_SOCKETS");

	for (int i = 0; i < 2; i++) {
		socklen_t length = sizeof raw_address[i];
		int room = 16 << 20;
		raw_address[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
		if (inherited != NULL) {
			raw_socket[i] = atoi(inherited) + i;
		} else {
			raw_check("socket", (raw_socket[i] = socket(AF_INET, SOCK_DGRAM, 0)) < 0);
			raw_check("bind", bind(raw_socket[i], (struct sockaddr *)&raw_address[i], length) < 0);
		}
		raw_check("getsockname", getsockname(raw_socket[i], (struct sockaddr *)&raw_address[i], &length) < 0);
		/* Root may exceed the system's limit on buffers. */
		if (setsockopt(raw_socket[i], SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
			raw_check("SO_RCVBUF", setsockopt(raw_socket[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof room) < 0);
	}
}

/* raw_connect connects the two sockets. */
static void raw_connect(void) {
	for (int i = 0; i < 2; i++)
		raw_check("connect", connect(raw_socket[i], (struct sockaddr *)&raw_address[1 - i], sizeof raw_address[i]) < 0);
}

static void raw_send(const void *data, size_t size) {
	raw_check("send", send(raw_socket[raw_rank], data, size, 0) != (ssize_t)size);
}

/* raw_recv returns the size of the next datagram. It polls, or sleeps until the datagram is received. */
static size_t raw_recv(void *data, size_t room, int polling) {
	unsigned looks = 0;
	ssize_t n;
	while ((n = recv(raw_socket[raw_rank], data, room, polling ? MSG_DONTWAIT : 0)) < 0) {
		raw_check("recv", errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
		raw_spin(&looks);
	}
	return n;
}
