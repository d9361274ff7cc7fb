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

// peer is a rank that is spoken to.
type peer struct {
	rank int
	addr netip.AddrPort
	// call has an element when the peer has asked to be called.
	call chan struct{}

	// mu is held to write into the link's memory.
	mu sync.Mutex
	// link is where packets go, or nil.
	link *link
	// last says why there is none.
	last error
	// closed: the peer has said that it shuts down, when the last link ended.
	closed bool
	// limited observes the limits that have kept the link from being made since it was last there.
	limited rlimit.Watch

	// unreadable is the nonce of a process whose memory could not be read when it
	// should have been.
	unreadable nonce
	// adverts counts those that the peer has made over any link, and reader fetches
	// them.
	adverts uint64
	reader  remoteReader
	// copier waits for the peer's memory.
	copier copier

	// newest is the last link that Poll knows. It is Poll's.
	newest *link
}

// link is what two ranks share.
type link struct {
	peer *peer
	conn *net.UnixConn
	mem  []byte
	out  writer
	in   reader
	// peerDoorbell is the peer's doorbell.
	peerDoorbell doorbell
	// ended says that nothing more is written into in.
	ended atomic.Bool
	// distance says by which way long payload goes, and far has that for the peer; peerFar is the peer's.
	distance     distance
	far, peerFar *atomic.Uint64
	// exposes says that the peer can read our memory, and fetches that we can read
	// its, that of remote.
	exposes, fetches bool
	remote           remote
	// pages says which of the memory of remote is there, or is nil.
	pages *pagemap
	// shared is the peer's shared buffer, until it is handed on.
	shared []byte
	// advertised is what the peer advertises, by slot. Its peer's mu guards it.
	advertised [advertSlots]advertised
	// untrusted: something could not be read that should have been there. Its
	// peer's mu guards it, too.
	untrusted bool

	// What follows is Poll's.

	// before is the link to the same peer that this one took the place of, until
	// what is in it has been read.
	before *link
	// reported says that Poll has reported the link, broken that it is invalid,
	// and gone that Poll has removed it.
	reported, broken, gone bool
	// postponed are packets whose payload is not in the peer's memory yet, and job gets
	// that of the first to late.
	postponed []postponed
	job       *job
	late      []byte
	// unreadable says that it is broken because payload could not be fetched,
	// which Poll has not reported yet.
	unreadable bool
}

// newLink takes over the mappings.
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

// end has nothing more written into the link. What is in it can still be read, but for
// exposed payload: it will be retransmitted, and its descriptors would not end.
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

// free gives the memory of a link back.
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

// doorbell is where a receiver says that it sleeps, and how to wake it.
type doorbell struct {
	page []byte
	// bell is an eventfd.
	bell int
	// rung is what still has read.
	rung [8]byte
}

// once is how an eventfd is rung.
var once = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// checkBell returns an error unless fd is an eventfd, as far as the system reports. A write
// to something else may block forever, whatever its mode.
func checkBell(fd int) error {
	kind, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && kind != "anon_inode:[eventfd]" {
		return fmt.Errorf("its bell is no eventfd but %s", kind)
	}
	return nil
}

// asleep is 1 while the receiver waits for the bell.
func (d *doorbell) asleep() *atomic.Uint64 { return word(d.page) }

// wake rings the bell of a receiver that sleeps, unless another peer has. The packet
// has been written before.
func (d *doorbell) wake() {
	if d.asleep().Load() != 0 && d.asleep().CompareAndSwap(1, 0) {
		d.ring()
	}
}

// ring makes the bell readable. Its only error is that it has been rung so often that
// it is so anyway.
func (d *doorbell) ring() { _, _ = unix.Write(d.bell, once) }

// reset makes the bell unreadable.
func (d *doorbell) reset() { _, _ = unix.Read(d.bell, d.rung[:]) }

func (d *doorbell) close() {
	sharedmem.Unmap(d.page)
	unix.Close(d.bell)
}
