package udp

import (
	"net/netip"
)

// socket is the interface between a Conn and the operating system. At most one goroutine at a time may call send, and
// at most one may call recv, but send and recv may run concurrently.
type socket interface {
	capabilities() capabilities
	// refusals returns the peers for which the system has refused to segment. It may be called at any time.
	refusals() []Refusal
	// pathDatagramLen returns the maximum length of a datagram to a peer, in bytes, as far as the system knows the
	// path, or 0 if unknown. Only sockets with capabilities.supportsModes implement it.
	pathDatagramLen(peer int) int
	// drops returns the number of datagrams that the system has dropped because the receive buffer was full, or an
	// error if the system does not report it. It may be called at any time. The number wraps around.
	drops() (uint32, error)
	// resolve resolves new addresses of the peers, in rank order, and returns a function that makes send use them. The
	// function must not be called during send.
	resolve(peers []netip.AddrPort) (move func(), err error)
	// send sends the datagrams in order and returns the number sent completely. If it did not send all of them, it
	// returns an error, or nil if the caller should retry the rest at once. It does not retain any slice. While the
	// socket's buffer is full, send waits if mayWait is set; otherwise it returns an error for which isFull is true,
	// after at most fullTimeout.
	send(out []outgoing, mayWait bool) (int, error)
	// recv waits for datagrams and returns the number of entries of in that it has set. Without an error, it sets at
	// least one. The bytes are valid until the next call.
	recv(in []incoming) (int, error)
	// poll is like recv, but returns 0 if no datagram is available. poll and the following methods except close are
	// called only if capabilities.canPoll is set.
	poll(in []incoming) (int, error)
	// pollInto is like poll, but if possible it puts the bytes of a datagram that follow the first head bytes into buf,
	// and the bytes of coalesced datagrams in order.
	pollInto(in []incoming, head int, buf []byte) (int, error)
	// peek copies the beginning of the next datagram to head without receiving the datagram. It returns the number of
	// bytes copied, 0 also for an empty datagram, and the source of the datagram, or the zero AddrPort if no datagram is
	// available. It may be called only while isDrained returns true.
	peek(head []byte) (int, netip.AddrPort, error)
	// isDrained reports whether all datagrams received from the system have been returned.
	isDrained() bool
	// sleep is like isDrained. The caller will wait until pollFD is readable before it polls again.
	sleep() bool
	// unwatch ends the effect of sleep: until the next call of sleep, pollFD need not become readable.
	unwatch()
	// pollFD returns the file descriptor that becomes readable when a datagram arrives.
	pollFD() int
	// close closes the socket. All calls of send and recv, including calls in progress, return net.ErrClosed.
	close() error
}

// capabilities describes the features of a socket. They are detected when the socket is opened.
type capabilities struct {
	// sendBatch and recvBatch are the maximum numbers of datagrams per system call.
	sendBatch, recvBatch int
	// canPoll is set if the socket can be polled.
	canPoll bool
	// supportsModes is set if the socket implements every sendMode.
	supportsModes bool
	// canSegment is set if the system can segment long pieces into datagrams, and canCoalesce if it can coalesce
	// received datagrams.
	canSegment, canCoalesce bool
}

// outgoing is a datagram to be sent. Its content is the concatenation of its parts.
type outgoing struct {
	peer  int
	parts [3][]byte
	// unsegmented is set if the datagram must not be sent in one piece with other datagrams.
	unsegmented bool
	// mode is equal for all datagrams in one call of send.
	mode sendMode
	// position is the position in a message of several datagrams.
	position position
}

// position is the position of a datagram in a message.
type position uint8

const (
	// onlyDatagram is a message by itself, or needs no order.
	onlyDatagram position = iota
	firstOfMessage
	laterInMessage
)

// sendMode determines what happens to datagrams that are too long for the path.
type sendMode uint8

const (
	// sendDefault leaves the treatment to the system, as upstream's library does. Linux fragments datagrams that exceed
	// the path MTU known to it, and forbids routers to fragment.
	sendDefault sendMode = iota
	// sendWhole forbids all fragmentation, so that datagrams too long for the path are lost.
	sendWhole
	// sendFragments allows fragmentation by this host and by routers.
	sendFragments
)

// len returns the datagram's length in bytes.
func (o *outgoing) len() int { return len(o.parts[0]) + len(o.parts[1]) + len(o.parts[2]) }

// incoming is a received datagram.
type incoming struct {
	bytes []byte
	// rest is the part of the datagram that follows bytes, if the datagram is not contiguous in memory. If segmentLen
	// is not 0, bytes consists of several datagrams of that length, of which the last may be shorter.
	rest       []byte
	segmentLen int
	from       netip.AddrPort
	// truncated is set if the datagram was longer than the buffer, so that its end is missing.
	truncated bool
}
