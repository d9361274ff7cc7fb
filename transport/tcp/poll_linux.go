package tcp

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// hasPoll reports whether the system supports an inbox.
const hasPoll = true

const (
	// nearLinks is the maximum number of links at which every poll reads from all of them. With more links, a poll
	// reads from the link that last delivered data, and asks the epoll instance about the rest, so that its cost does
	// not depend on the number of ranks.
	nearLinks = 2
	// nearStreak is the number of consecutive polls of the nearest link that may succeed before the other links are
	// checked.
	nearStreak = 8
	// readyLinks is the maximum number of ready links that one epoll_wait reports.
	readyLinks = 32
	// bellID identifies the bell in the epoll instance. Links are identified there by the rank of their peer.
	bellID = -1
)

// inbox polls the connections of a Conn for packets, on behalf of goroutines that wait for them.
type inbox struct {
	c            *Conn
	writeTimeout time.Duration
	// epfd is an epoll instance that becomes readable when data arrives. bell is an eventfd registered with it,
	// used for events that do not arrive on a connection.
	epfd, bell int
	// writersWaiting is the number of links waiting for space in the kernel's send buffer.
	writersWaiting atomic.Int32
	// closed is set once the inbox delivers nothing more.
	closed    atomic.Bool
	closeOnce sync.Once
	// waitMu is held by Recv while it waits on the epoll instance.
	waitMu sync.Mutex

	// newLinks holds new links from which nothing has been read yet, at most one per peer. linksChanged is set if
	// newLinks may not be empty, or if there may be events that do not arrive on a connection.
	newLinksMu   sync.Mutex
	newLinks     []*link
	linksChanged atomic.Bool

	// mu is held by Poll, Sleep and Close. It guards the fields below.
	mu sync.Mutex
	// links are the links to read from, and byRank holds the same links by rank.
	links  []*link
	byRank []*link
	// nearLink is the link that last delivered data. streak is the number of consecutive polls that found data there.
	// rotation is the index of the link to read first.
	nearLink         *link
	streak, rotation int
	// backlogged is a link with received packets that did not fit in the last batch.
	backlogged *link
	// placements holds the placements passed to the current Poll. It is nil if the caller passed none.
	placements *mpe.Placements
	// endedLinks holds links that deliver nothing more, to be removed.
	endedLinks []*link
	events     [readyLinks]unix.EpollEvent
}

func newInbox(c *Conn) (*inbox, error) {
	in := &inbox{c: c, writeTimeout: c.cfg.WriteTimeout, byRank: make([]*link, len(c.peers))}
	var err error
	if in.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if in.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(in.epfd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err = unix.EpollCtl(in.epfd, unix.EPOLL_CTL_ADD, in.bell,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: bellID}); err != nil {
		unix.Close(in.bell)
		unix.Close(in.epfd)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return in, nil
}

// CanPoll reports whether waiting goroutines can poll for packets. They can on Linux, if all peers use the
// extended profile without TLS.
func (c *Conn) CanPoll() bool { return c.inbox != nil }

// Poll is like Recv, but returns 0 immediately if no packet is available.
func (c *Conn) Poll(batch []mpe.RxPacket, at *mpe.Placements) (int, error) {
	in := c.inbox
	if in.closed.Load() { // Close may hold mu for long
		return 0, mpe.ErrTransportClosed
	}
	n := 0
	in.mu.Lock()
	if len(batch) > 0 && !in.closed.Load() {
		in.placements = at
		n = in.poll(batch)
		in.placements = nil
	}
	in.mu.Unlock() // no defer: most polls find nothing, and do nothing else
	return n, nil
}

// poll fills the batch: with packets that did not fit in the last batch, else with changes of links, else by reading. A
// few links are read directly, because asking the epoll instance first would cost more.
func (in *inbox) poll(batch []mpe.RxPacket) (n int) {
	// Packets returned by the last poll may be overwritten from now on, but not packets returned by this one.
	if l := in.backlogged; l != nil {
		in.backlogged = nil
		if n = in.deliver(l, batch); n > 0 {
			in.removeEnded()
			return n
		}
	}
	if in.linksChanged.Load() {
		if n = in.reportChanges(batch); n > 0 {
			return n
		}
	}
	if len(in.links) <= nearLinks && in.writersWaiting.Load() == 0 {
		n = in.readAll(batch)
	} else {
		n = in.readReady(batch)
	}
	in.removeEnded()
	return n
}

// readAll reads from all links.
func (in *inbox) readAll(batch []mpe.RxPacket) (n int) {
	if in.rotation++; in.rotation >= len(in.links) {
		in.rotation = 0
	}
	for i := range in.links {
		if n == len(batch) {
			break
		}
		if i += in.rotation; i >= len(in.links) {
			i -= len(in.links)
		}
		n += in.read(in.links[i], batch[n:])
	}
	return n
}

// readReady reads from the nearest link. If that link has no data, it reads from the links that do.
func (in *inbox) readReady(batch []mpe.RxPacket) (n int) {
	if in.nearLink != nil && in.streak < nearStreak {
		if n = in.read(in.nearLink, batch); n > 0 {
			in.streak++
			return n
		}
	}
	in.streak = 0
	ready, err := unix.EpollWait(in.epfd, in.events[:], 0)
	if err != nil {
		return 0 // EINTR
	}
	// While links have data, the epoll instance keeps reporting them in the same order, and the first one might
	// always fill the batch.
	in.rotation++
	for i := range ready {
		ev := &in.events[(i+in.rotation)%ready]
		if ev.Fd == bellID {
			continue // handled before, by reportChanges
		}
		l := in.byRank[ev.Fd]
		if ev.Events&unix.EPOLLOUT != 0 {
			in.resumeWrite(l)
		}
		if ev.Events&^unix.EPOLLOUT == 0 || n == len(batch) {
			continue // the epoll instance will report it again
		}
		if got := in.read(l, batch[n:]); got > 0 {
			n += got
			in.nearLink = l
		}
	}
	return n
}

// resumeWrite resumes writing pending data.
func (in *inbox) resumeWrite(l *link) {
	w := l.wire
	w.mu.Lock()
	var err error
	if !w.out.closed {
		err = in.flush(l)
	}
	w.mu.Unlock()
	if err != nil {
		l.close(err)
	}
}

// read reads available data from a link, and returns the number of packets that it added to the batch.
func (in *inbox) read(l *link, batch []mpe.RxPacket) int {
	w := l.wire
	if w.ended {
		return 0
	}
	var taken int // number of packets added to the batch
	var n int
	var errno unix.Errno
	if at := in.placement(l); at != nil {
		taken, n, errno = w.direct.read(w, at, batch)
		for i := range batch[:taken] {
			batch[i].Peer, batch[i].SourceAddr = l.peer.rank, l.from
		}
	} else {
		n, errno = w.read()
	}
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0
	case errno != 0:
		in.endLink(l, os.NewSyscallError("recvfrom", errno))
		return 0
	case n == 0:
		in.endLink(l, errPeerClosed)
		return 0
	}
	return taken + in.deliver(l, batch[taken:])
}

// placement returns the placement for the next packet from a link, or nil if no placement matches. If a partial packet
// was placed directly and its placement no longer exists, the rest of the packet is skipped.
func (in *inbox) placement(l *link) *mpe.Placement {
	var at *mpe.Placement
	if in.placements != nil {
		at = in.placements.ForPeer(l.peer.rank)
	}
	if w := l.wire; w.direct.partialBytes > 0 {
		if at == nil || !w.direct.continuesPartial(at) {
			w.direct.skipPartial(&w.in)
			return nil
		}
	} else if at == nil || w.in.skip > 0 || !w.in.mayContinue(at) {
		return nil
	}
	return at
}

// deliver moves received packets into the batch.
func (in *inbox) deliver(l *link, batch []mpe.RxPacket) (n int) {
	w := l.wire
	if w.ended {
		return 0
	}
	if !l.hasData && w.in.unreadBytes() > 0 {
		l.hasData = true
		if isTLSRecord(w.in.head()) {
			return in.endInvalid(l, batch, &TLSError{Addr: l.from, Err: errPeerUsesTLS})
		}
	}
	for n < len(batch) {
		packet, err := w.in.next()
		if err != nil {
			return n + in.endInvalid(l, batch[n:], err)
		}
		if packet == nil {
			break
		}
		batch[n] = mpe.RxPacket{Kind: mpe.RxDatagram, Peer: l.peer.rank, SourceAddr: l.from, Bytes: packet, Verified: true}
		n++
	}
	if n > 0 && !w.hasReceived.Load() {
		w.hasReceived.Store(true)
	}
	if n == len(batch) && w.in.hasHeader() {
		in.backlogged = l
	}
	return n
}

// endInvalid closes a link that delivered invalid data, and reports that.
func (in *inbox) endInvalid(l *link, batch []mpe.RxPacket, err error) int {
	in.endLink(l, err)
	batch[0] = mpe.RxPacket{Kind: mpe.RxBroken, Peer: l.peer.rank, SourceAddr: l.from, Bytes: []byte(err.Error())}
	return 1
}
