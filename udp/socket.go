package udp

import (
	"net/netip"
)

// socket is what the operating system does for a Conn. send is called by one
// goroutine at a time, and so is recv; the two run concurrently.
type socket interface {
	capabilities() capabilities
	// refusals are the peers for which the system no longer segments. It is
	// called at any time.
	refusals() []Refusal
	// longest returns how many bytes a datagram to a peer may have, by what the system knows of
	// the path, or 0. It is for sockets that have modes.
	longest(peer int) int
	// drops returns how many datagrams the system had no room for, or an error if it
	// does not report that. It is called at any time. The count wraps around.
	drops() (uint32, error)
	// resolve makes out how to reach peers at other addresses, in rank order, and
	// returns what has send do so. That is called when send is not.
	resolve(peers []netip.AddrPort) (move func(), err error)
	// send sends the datagrams in order and returns how many of them went,
	// each of them whole. Fewer than all come with an error, or without one
	// if the rest is to be tried at once. It keeps no slice. While the
	// socket's buffer is full, it waits if it may, and otherwise returns an
	// error that isFull knows, after fullTimeout at most.
	send(out []outgoing, mayWait bool) (int, error)
	// recv waits for datagrams and returns how many entries it has filled in;
	// at least one without an error. The bytes are valid until the next call.
	recv(in []incoming) (int, error)
	// poll is recv, but returns 0 if nothing has arrived; idle reports that
	// nothing is left of what an earlier call has taken from the system; and
	// wakeup returns the descriptor that is readable when something arrives.
	// They are for sockets that canPoll.
	// pollInto is poll, but with the bytes of a datagram behind the first head
	// ones in buf, and those of the next behind them, if that can be done.
	poll(in []incoming) (int, error)
	// peek returns how many bytes of the next datagram it has copied to head, and where that
	// comes from; 0 if nothing has arrived. It is for when the socket is idle.
	pollInto(in []incoming, head int, buf []byte) (int, error)
	peek(head []byte) (int, netip.AddrPort, error)
	idle() bool
	wakeup() int
	// close makes send and recv, also those in progress, return net.ErrClosed.
	close() error
}

// capabilities is what a socket can do, detected once, when it is opened.
type capabilities struct {
	// sendBatch and recvBatch are how many datagrams a system call moves.
	sendBatch, recvBatch int
	// canPoll: datagrams can be polled for without waiting.
	canPoll bool
	// modes: the socket does as a sendMode says.
	modes bool
	// segments: the system segments long pieces into datagrams; coalesces: it puts
	// datagrams together again.
	segments, coalesces bool
}

// outgoing is a datagram to send: its parts, one behind the other.
type outgoing struct {
	peer  int
	parts [3][]byte
	// alone: it is not to be sent in one piece with others.
	alone bool
	// mode is the same for all that are sent at a time.
	mode sendMode
}

// sendMode says what becomes of datagrams that are too long for the path.
type sendMode uint8

const (
	// sendDefault leaves that to the system, as upstream's library does. Linux fragments
	// what is too long for the path as far as it knows that, and forbids it to routers.
	sendDefault sendMode = iota
	// sendWhole has them lost: nobody may fragment them.
	sendWhole
	// sendFragments lets everybody fragment them.
	sendFragments
)

// len is the datagram's length in bytes.
func (o *outgoing) len() int { return len(o.parts[0]) + len(o.parts[1]) + len(o.parts[2]) }

// incoming is a datagram that arrived.
type incoming struct {
	bytes []byte
	// rest is the rest of the datagram, if it is not in one piece; each is not
	// 0 if bytes are several datagrams of that length, the last may be shorter.
	rest []byte
	each int
	from netip.AddrPort
	// cut reports that the datagram was longer than bytes.
	cut bool
}
