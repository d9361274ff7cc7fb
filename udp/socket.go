package udp

import (
	"net/netip"
)

// socket is the interface of a Conn to the operating system. One goroutine at a time calls send, and one at a time
// calls recv; the two may run concurrently.
type socket interface {
	capabilities() capabilities
	// refusals returns the peers for which the system no longer segments. It may be called at any time.
	refusals() []Refusal
	// longest returns the maximum length of a datagram to a peer, in bytes, as far as the system knows the path, or 0.
	// It is for sockets with modes.
	longest(peer int) int
	// drops returns the number of datagrams that the system dropped because the buffer was full, or an error if it does
	// not report that. It may be called at any time. The count wraps around.
	drops() (uint32, error)
	// resolve prepares the use of other addresses of the peers, in rank order, and returns a function that makes send
	// use them. The function must not be called during send.
	resolve(peers []netip.AddrPort) (move func(), err error)
	// send sends the datagrams in order and returns the number sent completely. If that is less than all, it returns an
	// error, or nil if the rest should be retried at once. It retains no slice. While the socket's buffer is full, send
	// waits if mayWait; otherwise it returns an error for which isFull is true, after at most fullTimeout.
	send(out []outgoing, mayWait bool) (int, error)
	// recv waits for datagrams and returns the number of entries filled in, at least one without an error. The bytes
	// are valid until the next call.
	recv(in []incoming) (int, error)
	// poll is recv, but returns 0 if nothing has arrived. It and the methods up to wakeup are for sockets that canPoll.
	poll(in []incoming) (int, error)
	// pollInto is poll, but if possible it puts the bytes of a datagram after the first head bytes into buf, and the
	// bytes of the next datagram after them.
	pollInto(in []incoming, head int, buf []byte) (int, error)
	// peek copies the beginning of the next datagram to head, and returns the number of bytes copied and the source of
	// the datagram; 0 if nothing has arrived. It may be called only while the socket is idle.
	peek(head []byte) (int, netip.AddrPort, error)
	// idle reports whether all datagrams that earlier calls received from the system were returned.
	idle() bool
	// wakeup returns the descriptor that becomes readable when a datagram arrives.
	wakeup() int
	// close makes send and recv return net.ErrClosed, including calls in progress.
	close() error
}

// capabilities are the features of a socket, detected once, when it is opened.
type capabilities struct {
	// sendBatch and recvBatch are the maximum numbers of datagrams per system call.
	sendBatch, recvBatch int
	// canPoll: the socket can be polled without waiting.
	canPoll bool
	// modes: the socket implements all sendModes.
	modes bool
	// segments: the system segments long pieces into datagrams; coalesces: it joins received datagrams.
	segments, coalesces bool
}

// outgoing is a datagram to send: the concatenation of its parts.
type outgoing struct {
	peer  int
	parts [3][]byte
	// alone: it must not be sent in one piece with other datagrams.
	alone bool
	// mode is the same for all datagrams of one send.
	mode sendMode
}

// sendMode determines the treatment of datagrams that are too long for the path.
type sendMode uint8

const (
	// sendDefault leaves it to the system, as upstream's library does. Linux fragments datagrams that are too long for
	// the path as far as it knows the path, and forbids fragmentation to routers.
	sendDefault sendMode = iota
	// sendWhole forbids all fragmentation: such datagrams are lost.
	sendWhole
	// sendFragments allows fragmentation by this host and by routers.
	sendFragments
)

// len is the datagram's length in bytes.
func (o *outgoing) len() int { return len(o.parts[0]) + len(o.parts[1]) + len(o.parts[2]) }

// incoming is a received datagram.
type incoming struct {
	bytes []byte
	// rest is the rest of the datagram, if it is not in one piece. each is not 0 if bytes are several datagrams of that
	// length, of which the last may be shorter.
	rest []byte
	each int
	from netip.AddrPort
	// cut: the datagram was longer than bytes.
	cut bool
}
