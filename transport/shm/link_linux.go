package shm

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
)

// peer is a rank that a Conn may have a link to.
type peer struct {
	rank int
	addr netip.AddrPort
	// callRequested contains an element if the peer has requested that we call it.
	callRequested chan struct{}

	// mu guards writes into the link's memory.
	mu sync.Mutex
	// link carries the packets, or is nil.
	link *link
	// lastError is the reason why the peer has no link.
	lastError error
	// closed is set if the last link ended because the peer closed its Conn.
	closed bool
	// limitWatch tracks the process limits that have prevented a new link since the last one.
	limitWatch rlimit.Watch

	// unreadableNonce is the nonce of a process whose memory later could not be read, although the test succeeded when
	// the link was made.
	unreadableNonce nonce
	// advertCount counts the buffers that the peer has advertised over all links. reader copies them.
	advertCount uint64
	reader      remoteReader
	// copier reads memory of the peer that is not resident.
	copier copier

	// newestLink is the last link that Poll has seen. Only Poll uses this field.
	newestLink *link
	// leased is the link that C code uses, or nil. The engine's lock guards it.
	leased *link
}

// link is the memory that two ranks share.
type link struct {
	peer *peer
	conn *net.UnixConn
	// mem contains the rings out and in, their heads and the slots of adverts. The peer can change all of it at any time.
	mem []byte
	out writer
	in  reader
	// peerDoorbell is the peer's doorbell.
	peerDoorbell doorbell
	// ended is set once the peer writes nothing more into in.
	ended atomic.Bool
	// distance decides whether long payload to the peer goes through the ring or by single copy. farFlag publishes this
	// decision; peerFarFlag is the peer's decision.
	distance             distance
	farFlag, peerFarFlag *atomic.Uint64
	// canExpose is set if the peer can read our memory, and canFetch if we can read the memory of remote.
	canExpose, canFetch bool
	remote              remote
	// pages reports which pages of remote are resident. It is nil if they are unknown.
	pages *pagemap
	// shared is the peer's shared buffer, until sharedBuffers takes ownership of it.
	shared []byte
	// advertBuffers holds the buffers that the peer advertises, indexed by slot. The peer's mu guards it.
	advertBuffers [advertSlots]advertisedBuffer
	// untrusted is set once a read of the peer's memory has failed unexpectedly. The peer's mu guards it.
	untrusted bool

	// Poll owns the fields below.

	// previous is the previous link to the same peer. It is nil once all packets from that link have been read.
	previous *link
	// reported is set once Poll has reported the link. broken is set if the link is invalid. removed is set once Poll
	// has removed the link.
	reported, broken, removed bool
	// postponed holds packets whose payload is not resident in the peer's memory. job reads the payload of the first
	// one into jobBuf.
	postponed []postponed
	job       *job
	jobBuf    []byte
	// fetchFailed is set while Poll has not yet reported that the link is broken because payload could not be fetched.
	fetchFailed bool
}

// newLink returns a link. The link owns the mappings.
func newLink(p *peer, conn *net.UnixConn, mem []byte, ring int, lower bool, peerDoorbell doorbell) *link {
	l := &link{peer: p, conn: conn, mem: mem, peerDoorbell: peerDoorbell, distance: distance{localTime: localCopyTime()}}
	slots := slotsOffset(ring)
	low, high := mem[pageLen:pageLen+ring:pageLen+ring], mem[pageLen+ring:slots:slots]
	toLow, toHigh := mem[slots:slots+slotsLen:slots+slotsLen], mem[slots+slotsLen:linkLen(ring):linkLen(ring)]
	if lower {
		l.farFlag, l.peerFarFlag = wordAt(mem[lowFar:]), wordAt(mem[highFar:])
		l.in = reader{ring: low, head: wordAt(mem[lowHead:]), slots: toLow}
		l.out = writer{ring: high, head: wordAt(mem[highHead:]), adverts: advertTable{slots: toHigh}}
	} else {
		l.farFlag, l.peerFarFlag = wordAt(mem[highFar:]), wordAt(mem[lowFar:])
		l.in = reader{ring: high, head: wordAt(mem[highHead:]), slots: toHigh}
		l.out = writer{ring: low, head: wordAt(mem[lowHead:]), adverts: advertTable{slots: toLow}}
	}
	return l
}

// end closes the link for writing. The peer can still read the packets in the ring, but not exposed payload: its
// descriptors are revoked, because nothing would revoke them later, and the payload is retransmitted.
func (l *link) end(reason error) {
	p := l.peer
	p.mu.Lock()
	if p.link == l {
		p.link, p.lastError = nil, reason
	}
	l.out.invalidate(0)
	p.mu.Unlock()
	l.conn.Close()
}

// free releases the memory of a link.
func (l *link) free() {
	p := l.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == l {
		p.link = nil
	}
	l.removed = true
	l.out.invalidate(0)
	l.pages.close()
	l.pages, l.canFetch = nil, false
	sharedmem.Unmap(l.mem)
	sharedmem.Unmap(l.shared)
	l.shared = nil
	l.peerDoorbell.close()
	l.mem, l.in, l.out = nil, reader{}, writer{}
}

// doorbell shows whether a receiver is asleep, and wakes it.
type doorbell struct {
	page []byte
	// eventFD is an eventfd.
	eventFD int
	// readBuf is the buffer for reading the eventfd.
	readBuf [8]byte
}

// ringValue is the value that is written to the eventfd in order to ring the bell.
var ringValue = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// checkBell returns an error unless fd is an eventfd, as far as the system reports that. A write to another
// kind of file may block forever, whatever its mode.
func checkBell(fd int) error {
	kind, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && kind != "anon_inode:[eventfd]" {
		return fmt.Errorf("its doorbell is %s, not an eventfd", kind)
	}
	return nil
}

// asleepFlag is 1 while the receiver sleeps.
func (d *doorbell) asleepFlag() *atomic.Uint64 { return wordAt(d.page) }

// wake rings the bell if the receiver is asleep and no other peer has rung it. It must be called after the
// packet has been written.
func (d *doorbell) wake() {
	if d.asleepFlag().Load() != 0 && d.asleepFlag().CompareAndSwap(1, 0) {
		d.ring()
	}
}

// ring makes the bell readable. It can fail only if the eventfd's counter is full; the bell is then readable already.
func (d *doorbell) ring() { _, _ = unix.Write(d.eventFD, ringValue) }

// reset makes the bell unreadable.
func (d *doorbell) reset() { _, _ = unix.Read(d.eventFD, d.readBuf[:]) }

func (d *doorbell) close() {
	sharedmem.Unmap(d.page)
	unix.Close(d.eventFD)
}
