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

// peer is a rank with which a Conn has, or may have, a link.
type peer struct {
	rank int
	addr netip.AddrPort
	// call has an element if the peer has asked to be called.
	call chan struct{}

	// mu guards writes into the link's memory.
	mu sync.Mutex
	// link carries the packets, or is nil.
	link *link
	// last is the reason why there is no link.
	last error
	// closed is set if the last link ended because the peer closed its Conn.
	closed bool
	// limited tracks the process limits that have prevented a new link since the last one.
	limited rlimit.Watch

	// unreadable is the nonce of a process whose memory could not be read although it should have been
	// readable.
	unreadable nonce
	// adverts counts the buffers that the peer has advertised over all links. reader copies them.
	adverts uint64
	reader  remoteReader
	// copier reads memory of the peer that is not resident.
	copier copier

	// newest is the last link known to Poll, which owns the field.
	newest *link
}

// link is the memory that two ranks share.
type link struct {
	peer *peer
	conn *net.UnixConn
	mem  []byte
	out  writer
	in   reader
	// peerDoorbell is the peer's doorbell.
	peerDoorbell doorbell
	// ended is set once nothing more is written into in.
	ended atomic.Bool
	// distance decides whether long payload to the peer goes through the ring or by single copy. far publishes
	// this decision; peerFar is the peer's decision.
	distance     distance
	far, peerFar *atomic.Uint64
	// exposes is set if the peer can read our memory. fetches is set if we can read the memory of remote.
	exposes, fetches bool
	remote           remote
	// pages reports which pages of remote are resident; it may be nil.
	pages *pagemap
	// shared is the peer's shared buffer, until sharedBuffers takes ownership of it.
	shared []byte
	// advertised holds the buffers that the peer advertises, indexed by slot. The peer's mu guards it.
	advertised [advertSlots]advertised
	// untrusted is set after a read of the peer's memory has failed although it should have worked. The peer's
	// mu guards it.
	untrusted bool

	// Poll owns the fields below.

	// before is the previous link to the same peer. It is nil once all packets from that link have been read.
	before *link
	// reported is set once Poll has reported the link. broken is set if the link is invalid. gone is set once
	// Poll has removed the link.
	reported, broken, gone bool
	// postponed holds packets whose payload is not resident in the peer's memory. job reads the payload of the
	// first one into late.
	postponed []postponed
	job       *job
	late      []byte
	// unreadable is set while Poll has not yet reported that the link is broken because payload could not be
	// fetched.
	unreadable bool
}

// newLink returns a link. The link owns the mappings.
func newLink(p *peer, conn *net.UnixConn, mem []byte, ring int, lower bool, peerDoorbell doorbell) *link {
	l := &link{peer: p, conn: conn, mem: mem, peerDoorbell: peerDoorbell, distance: distance{local: localCopy()}}
	slots := slotsAt(ring)
	low, high := mem[pageLen:pageLen+ring:pageLen+ring], mem[pageLen+ring:slots:slots]
	toLow, toHigh := mem[slots:slots+slotsLen:slots+slotsLen], mem[slots+slotsLen:linkLen(ring):linkLen(ring)]
	if lower {
		l.far, l.peerFar = word(mem[lowFar:]), word(mem[highFar:])
		l.in = reader{ring: low, head: word(mem[lowHead:]), slots: toLow}
		l.out = writer{ring: high, head: word(mem[highHead:]), adverts: adverts{slots: toHigh}}
	} else {
		l.far, l.peerFar = word(mem[highFar:]), word(mem[lowFar:])
		l.in = reader{ring: high, head: word(mem[highHead:]), slots: toHigh}
		l.out = writer{ring: low, head: word(mem[lowHead:]), adverts: adverts{slots: toLow}}
	}
	return l
}

// end stops writing into the link. The peer can still read the packets in the ring, but not exposed payload:
// that will be retransmitted, and its descriptors would never be ended.
func (l *link) end(reason error) {
	p := l.peer
	p.mu.Lock()
	if p.link == l {
		p.link, p.last = nil, reason
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
	l.gone = true
	l.out.invalidate(0)
	l.pages.close()
	l.pages, l.fetches = nil, false
	sharedmem.Unmap(l.mem)
	sharedmem.Unmap(l.shared)
	l.shared = nil
	l.peerDoorbell.close()
	l.mem, l.in, l.out = nil, reader{}, writer{}
}

// doorbell shows whether a receiver is asleep, and wakes it.
type doorbell struct {
	page []byte
	// bell is an eventfd.
	bell int
	// rung is the buffer for reading the eventfd.
	rung [8]byte
}

// once is the value written to the eventfd to ring the bell.
var once = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// checkBell returns an error unless fd is an eventfd, as far as the system reports that. A write to another
// kind of file may block forever, whatever its mode.
func checkBell(fd int) error {
	kind, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && kind != "anon_inode:[eventfd]" {
		return fmt.Errorf("its doorbell is %s, not an eventfd", kind)
	}
	return nil
}

// asleep is 1 while the receiver waits for the bell.
func (d *doorbell) asleep() *atomic.Uint64 { return word(d.page) }

// wake rings the bell if the receiver is asleep and no other peer has rung it. It must be called after the
// packet has been written.
func (d *doorbell) wake() {
	if d.asleep().Load() != 0 && d.asleep().CompareAndSwap(1, 0) {
		d.ring()
	}
}

// ring makes the bell readable. It can fail only if the eventfd's counter is full, and then the bell is
// readable anyway.
func (d *doorbell) ring() { _, _ = unix.Write(d.bell, once) }

// reset makes the bell unreadable.
func (d *doorbell) reset() { _, _ = unix.Read(d.bell, d.rung[:]) }

func (d *doorbell) close() {
	sharedmem.Unmap(d.page)
	unix.Close(d.bell)
}
